import {
  type FeedControl,
  type FeedErrorData,
  parseToken,
  type TokenFields,
} from '@brokerfeed/core/wire';
import type {
  Operation,
  OperationLink,
  OperationResultEnvelope,
  OperationResultObserver,
  TRPCClientError,
} from '@trpc/client';
import type { AnyTRPCRouter } from '@trpc/server';
import { Attempts } from './attempts.ts';
import { feedData, statusOf } from './feed-error.ts';
import type { GapPolicy, ResolvedFeedLinkOptions } from './feed-options.ts';
import { type FeedState, type FeedSubscription, isFeedControl } from './feed-state.ts';
import type { KeptToken } from './kept-token.ts';
import { Repeats } from './repeats.ts';
import { ownToken, withToken } from './resume-input.ts';

type Envelope<Router extends AnyTRPCRouter> = OperationResultEnvelope<
  unknown,
  TRPCClientError<Router>
>;

/** Statuses with which a server, or what stands before it, says that it will be back. */
const OUTAGES: readonly (number | undefined)[] = [502, 503, 504];

/** Statuses that a dead token is answered with; 412 is how a 410 looks without `withFeedErrors()`. */
const DEAD_TOKEN: readonly (number | undefined)[] = [400, 410, 412];

/** A link that stood so long, in milliseconds, was good, though no frame came. */
const STOOD_MS = 5_000;

/** One subscription, through all the subscriptions that it takes of the links behind. */
export class FeedSubscriber<Router extends AnyTRPCRouter> {
  readonly #op: Operation;
  readonly #next: Parameters<OperationLink<Router>>[0]['next'];
  readonly #observer: OperationResultObserver<Router, unknown>;
  readonly #options: ResolvedFeedLinkOptions;
  readonly #kept: KeptToken | undefined;
  readonly #subscription: FeedSubscription;
  readonly #attempts: Attempts;
  readonly #repeats = new Repeats();
  #kind: 'unknown' | 'feed' | 'other' = 'unknown';
  #overEvents = false;
  /** What was told last of the subscription under way; nothing until it stands. */
  #told: FeedState['state'] | undefined;
  #token: string | undefined;
  /** The number of the value of a snapshot under way that comes next; -1 where none came so far. */
  #snapshot: number | undefined;
  /** Tries since the last frame. */
  #tries = 0;
  /** When the attempt under way was told to have started; never, so far. */
  #startedAt = Infinity;

  constructor(
    op: Operation,
    next: Parameters<OperationLink<Router>>[0]['next'],
    observer: OperationResultObserver<Router, unknown>,
    options: ResolvedFeedLinkOptions,
    kept: KeptToken | undefined,
  ) {
    this.#op = op;
    this.#next = next;
    this.#observer = observer;
    this.#options = options;
    this.#kept = kept;
    this.#subscription = { path: op.path, input: op.input, context: op.context };
    this.#attempts = new Attempts(options.clock);
  }

  start(): void {
    this.#token = ownToken(this.#op.input);
    if (this.#token === undefined) {
      this.#token = this.#kept?.read();
      // Only feeds are kept: this one is known before its first frame.
      if (this.#token !== undefined) this.#kind = 'feed';
    }
    this.#subscribe();
  }

  close(): void {
    this.#attempts.leave();
    this.#kept?.close();
  }

  #subscribe(): void {
    this.#told = undefined;
    this.#startedAt = Infinity;
    this.#attempts.subscribe(this.#next(this.#operation()), {
      next: (envelope) => this.#take(envelope),
      error: (error) => this.#fail(error),
      complete: () => this.#complete(),
    });
  }

  /** The caller's own operation, untouched, as long as there is no other token than its own. */
  #operation(): Operation {
    const op = this.#op;
    const token = this.#token;
    return token === ownToken(op.input) ? op : { ...op, input: withToken(op.input, token) };
  }

  #take(envelope: Envelope<Router>): void {
    const { result } = envelope;
    if (envelope.context?.eventSource) this.#overEvents = true;
    const isLive = this.#attempts.watch();
    switch (result.type) {
      case 'state':
        if (feedData(result.error) !== undefined) this.#kind = 'feed';
        if (result.error && this.#kind === 'feed') {
          // A browser comes back after a fixed time, as all others do, with the url, and the credentials, of the first.
          if (this.#overEvents && this.#mayRetry(result.error)) {
            this.#retry(result.error);
            return;
          }
          this.#lost(result.error, undefined);
        }
        break;
      case 'data':
      case undefined:
        this.#tries = 0;
        if (typeof result.id === 'string' && this.#kind !== 'other') {
          this.#frame(envelope, result.id, result.data);
          return;
        }
        break;
      case 'started':
        this.#startedAt = this.#options.clock.now();
        this.#snapshot = undefined;
        // An event stream says so before the procedure is asked.
        if (this.#kind === 'feed' && !this.#overEvents) this.#stand();
        break;
      case 'stopped':
        break;
      default:
        result satisfies never;
    }
    if (isLive()) this.#pass(envelope);
  }

  #pass(envelope: Envelope<Router>): void {
    // An event stream would take what the consumer throws for a loss of its own.
    call(() => this.#observer.next(envelope));
  }

  #frame(envelope: Envelope<Router>, id: string, tracked: unknown): void {
    const fields = parseToken(id)?.fields;
    if (fields === undefined) {
      this.#kind = 'other';
      this.#kept?.forget();
      this.#pass(envelope);
      return;
    }
    this.#kind = 'feed';
    const isLive = this.#attempts.watch();
    const isEntry = fields.kind === 'entry' || fields.kind === 'inside';
    if (isEntry && this.#repeats.has(fields)) {
      this.#stand();
      return;
    }
    this.#token = id;
    this.#kept?.keep(id);
    this.#stand();
    // Whoever was told may have left.
    if (!isLive()) return;
    const control = isEntry ? undefined : controlOf(tracked);
    if (isEntry || (control && fields.kind === 'position')) this.#snapshot = undefined;
    else this.#takeSnapshot(fields, control !== undefined);
    if (!isLive()) return;
    if (control === undefined) this.#pass(envelope);
    else if (control === 'position') this.#repeats.seePosition(fields);
    // A link that moves to another socket is told again how it stands there.
    else if (control !== 'attached' && control !== this.#told) this.#tell({ state: control });
  }

  /** A control frame tells that a snapshot is under way: its first value may be long in coming, or there may be none. */
  #takeSnapshot({ kind, index }: TokenFields, isControl: boolean): void {
    const next = this.#snapshot;
    const begins =
      next === undefined || (!isControl && kind === 'snapshot' && next >= 0 && index !== next);
    if (isControl) this.#snapshot ??= -1;
    else this.#snapshot = kind === 'snapshot' ? index + 1 : undefined;
    if (!begins) return;
    this.#repeats.forget();
    this.#tell({ state: 'gap', reason: undefined });
  }

  #fail(error: TRPCClientError<Router>): void {
    const feed = feedData(error);
    if (feed !== undefined) this.#kind = 'feed';
    if (feed !== undefined && isGap(feed)) {
      this.#lose(feed, error);
    } else if (this.#mayRetry(error)) {
      this.#retry(error);
    } else {
      // One without a path is not of the procedure, and says nothing of the token.
      if (error.data?.path && DEAD_TOKEN.includes(statusOf(error))) this.#kept?.forget();
      this.#endWith(error);
    }
  }

  /** Forgets the token that a gap has made useless, and starts afresh if the policy is to. */
  #lose(gap: FeedErrorData, error: TRPCClientError<Router>): void {
    this.#token = undefined;
    this.#kept?.forget();
    this.#repeats.forget();
    const isLive = this.#attempts.watch();
    this.#tell({ state: 'gap', reason: gap.reason });
    const policy = this.#policy(gap);
    if (!isLive()) return;
    // A second gap in a row is not to become a loop.
    if (policy === 'restart') this.#wait(this.#tries === 0 ? 0 : this.#delayMs(), error);
    else this.#endWith(error);
  }

  #policy(gap: FeedErrorData): GapPolicy {
    const { onGap } = this.#options;
    if (typeof onGap !== 'function') return onGap;
    let policy: GapPolicy = 'error';
    call(() => {
      policy = onGap(gap, this.#subscription);
    });
    return policy;
  }

  #mayRetry(error: TRPCClientError<Router>): boolean {
    if (this.#kind !== 'feed' || this.#options.tries === 0) return false;
    // No data: it did not come from the procedure, the link was lost.
    return !error.data || OUTAGES.includes(statusOf(error));
  }

  #retry(error: TRPCClientError<Router>): void {
    const { tries, clock } = this.#options;
    if (!error.data && clock.now() - this.#startedAt >= STOOD_MS) this.#tries = 0;
    if (this.#tries >= tries) {
      this.#endWith(error);
      return;
    }
    const ms = this.#delayMs();
    const isLive = this.#attempts.watch();
    this.#lost(error, ms);
    if (isLive()) this.#wait(ms, error);
  }

  #delayMs(): number {
    return this.#options.delayMs(this.#tries);
  }

  /** Waits, and subscribes again. */
  #wait(ms: number, error: TRPCClientError<Router>): void {
    this.#tries += 1;
    const isLive = this.#attempts.watch();
    this.#pass({ result: { type: 'state', state: 'connecting', error } });
    if (!isLive()) return;
    this.#attempts.wait(ms, this.#op.signal, {
      again: () => this.#subscribe(),
      aborted: () => this.#complete(),
    });
  }

  #endWith(error: TRPCClientError<Router>): void {
    this.close();
    this.#observer.error(error);
  }

  #complete(): void {
    this.close();
    this.#observer.complete();
  }

  #stand(): void {
    if (this.#told !== undefined && this.#told !== 'lost') return;
    this.#snapshot = undefined;
    this.#tell({ state: 'attached' });
  }

  #lost(error: Error, retryMs: number | undefined): void {
    this.#tell({ state: 'lost', error, retryMs });
  }

  #tell(state: FeedState): void {
    this.#told = state.state;
    const { onFeedState } = this.#options;
    if (onFeedState !== undefined) call(() => onFeedState(state, this.#subscription));
  }
}

/** Tells a dead token, and what an overtaken reader gets, from a mistake in the server that a fresh start would not mend. */
function isGap({ status, reason }: FeedErrorData): boolean {
  return status === 410 || (status === 400 && reason !== 'topic');
}

function controlOf(tracked: unknown): FeedControl['feed'] | undefined {
  const value = (tracked as { readonly data?: unknown } | undefined)?.data;
  return isFeedControl(value) ? value.feed : undefined;
}

/** Calls what the application gave us. What it throws is its own, and must not break the feed. */
function call(callback: () => void): void {
  try {
    callback();
  } catch (error) {
    setTimeout(() => {
      throw error;
    });
  }
}
