import { type FeedErrorData, parseToken, type TokenFields } from '@brokerfeed/core/wire';
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
  #standing = false;
  #token: string | undefined;
  /** Values of a snapshot that came so far. */
  #snapshot = 0;
  /** Tries since the last frame. */
  #tries = 0;

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
    this.#standing = false;
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
        if (typeof result.id === 'string' && this.#kind !== 'other') {
          this.#frame(envelope, result.id, result.data);
          return;
        }
        break;
      case 'started':
        this.#snapshot = 0;
        // An event stream says so before the procedure is asked.
        if (this.#kind === 'feed' && !this.#overEvents) this.#stand();
        break;
      case 'stopped':
        break;
      default:
        result satisfies never;
    }
    if (isLive()) this.#observer.next(envelope);
  }

  #frame(envelope: Envelope<Router>, id: string, tracked: unknown): void {
    const fields = parseToken(id)?.fields;
    if (fields === undefined) {
      this.#kind = 'other';
      this.#kept?.forget();
      this.#observer.next(envelope);
      return;
    }
    this.#kind = 'feed';
    this.#tries = 0;
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
    if (isEntry) this.#snapshot = 0;
    else if (this.#takeControl(fields, tracked)) return;
    else this.#takeSnapshot(fields);
    if (isLive()) this.#observer.next(envelope);
  }

  #takeControl(fields: TokenFields, tracked: unknown): boolean {
    const value = (tracked as { readonly data?: unknown } | undefined)?.data;
    if (!isFeedControl(value)) return false;
    const { feed } = value;
    if (feed === 'position') this.#repeats.seePosition(fields);
    else if (feed !== 'attached') this.#tell({ state: feed });
    return true;
  }

  #takeSnapshot({ kind, index }: TokenFields): void {
    this.#repeats.forget();
    const begins = this.#snapshot === 0 || (kind === 'snapshot' && index < this.#snapshot);
    this.#snapshot = kind === 'snapshot' ? index + 1 : 0;
    if (begins) this.#tell({ state: 'gap', reason: undefined });
  }

  #fail(error: TRPCClientError<Router>): void {
    const feed = feedData(error);
    if (feed !== undefined) this.#kind = 'feed';
    if (feed !== undefined && isGap(feed)) {
      this.#lose(feed, error);
    } else if (this.#mayRetry(error)) {
      this.#retry(error);
    } else {
      if (DEAD_TOKEN.includes(statusOf(error))) this.#kept?.forget();
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
    if (this.#tries >= this.#options.tries) {
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
    this.#observer.next({ result: { type: 'state', state: 'connecting', error } });
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
    if (this.#standing) return;
    this.#standing = true;
    this.#tell({ state: 'attached' });
  }

  #lost(error: Error, retryMs: number | undefined): void {
    this.#standing = false;
    this.#tell({ state: 'lost', error, retryMs });
  }

  #tell(state: FeedState): void {
    const { onFeedState } = this.#options;
    if (onFeedState !== undefined) call(() => onFeedState(state, this.#subscription));
  }
}

/** Tells a dead token, and what an overtaken reader gets, from a mistake in the server that a fresh start would not mend. */
function isGap({ status, reason }: FeedErrorData): boolean {
  return status === 410 || (status === 400 && reason !== 'topic');
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
