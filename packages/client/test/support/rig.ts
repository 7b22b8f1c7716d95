import type { FeedControl, FeedReason } from '@brokerfeed/core/wire';
import { FEED_STATUS } from '@brokerfeed/core/wire';
import {
  type Operation,
  type OperationContext,
  type OperationResultEnvelope,
  TRPCClientError,
} from '@trpc/client';
import type { AnyTRPCRouter } from '@trpc/server';
import { type Observer, observable, type Unsubscribable } from '@trpc/server/observable';
import { ManualClock } from '../../../core/test/support/manual-clock.ts';
import {
  type FeedLinkOptions,
  type FeedState,
  type FeedSubscription,
  feedLink,
} from '../../src/index.ts';

type Failure = TRPCClientError<AnyTRPCRouter>;
type Envelope = OperationResultEnvelope<unknown, Failure>;

/** One subscription that the link takes of what lies behind it, played by a test. */
export class Attempt {
  readonly op: Operation;
  readonly #observer: Observer<Envelope, Failure>;
  open = true;

  constructor(op: Operation, observer: Observer<Envelope, Failure>) {
    this.op = op;
    this.#observer = observer;
  }

  get token(): unknown {
    return (this.op.input as { lastEventId?: unknown } | undefined)?.lastEventId;
  }

  send(envelope: Envelope): void {
    this.#observer.next(envelope);
  }

  started(context?: OperationContext): void {
    this.send({ result: { type: 'started' }, ...(context && { context }) });
  }

  frame(id: string, data: unknown): void {
    this.send({ result: { type: 'data', id, data: { id, data } } });
  }

  control(id: string, feed: FeedControl['feed']): void {
    this.frame(id, { feed });
  }

  /** Says what tRPC's event stream says of a link that it will try again by itself. */
  connecting(error: Failure): void {
    this.send({ result: { type: 'state', state: 'connecting', error } });
  }

  fail(error: Failure): void {
    this.#observer.error(error);
  }

  refuse(reason: FeedReason): void {
    this.fail(refusal(reason));
  }

  complete(): void {
    this.#observer.complete();
  }
}

/** An error as tRPC's links make it of what a feed says. */
export function refusal(reason: FeedReason): Failure {
  const status = FEED_STATUS[reason];
  return procedureError(status, { feed: { status, reason } });
}

export function procedureError(httpStatus: number, more: object = {}): Failure {
  return TRPCClientError.from({
    error: {
      code: -32600,
      message: `status ${httpStatus}`,
      data: { httpStatus, path: 'feed', ...more },
    },
  });
}

/** An error as tRPC's links make it of a link that was lost. */
export function lostLink(): Failure {
  return TRPCClientError.from(new Error('the link was lost'));
}

/** What a subscription told its caller. */
export interface Consumer extends Unsubscribable {
  readonly envelopes: Envelope[];
  readonly values: unknown[];
  readonly errors: Failure[];
  readonly completed: number;
  /** Connection states. */
  readonly states: string[];
}

/** The link under test, between a caller and links that a test plays. */
export class Rig {
  readonly clock = new ManualClock();
  readonly attempts: Attempt[] = [];
  readonly states: FeedState[] = [];
  readonly subscriptions: FeedSubscription[] = [];
  /** What an attempt does at once, while it is subscribed to. */
  onAttempt: (attempt: Attempt) => void = () => {};
  readonly #call: (op: Operation) => ReturnType<ReturnType<ReturnType<typeof feedLink>>>;
  #id = 0;

  constructor(options: FeedLinkOptions = {}) {
    const link = feedLink<AnyTRPCRouter>({
      clock: this.clock,
      onFeedState: (state, subscription) => {
        this.states.push(state);
        this.subscriptions.push(subscription);
      },
      ...options,
    })({});
    this.#call = (op) => link({ op, next: (nextOp) => this.#play(nextOp) });
  }

  #play(op: Operation): ReturnType<Rig['call']> {
    return observable((observer) => {
      const attempt = new Attempt(op, observer);
      this.attempts.push(attempt);
      this.onAttempt(attempt);
      return () => {
        attempt.open = false;
      };
    });
  }

  call(op: Operation): ReturnType<ReturnType<ReturnType<typeof feedLink>>> {
    return this.#call(op);
  }

  operation(input?: unknown, more: Partial<Operation> = {}): Operation {
    this.#id += 1;
    return {
      id: this.#id,
      type: 'subscription',
      path: 'feed',
      input,
      context: {},
      signal: null,
      ...more,
    };
  }

  subscribe(
    input?: unknown,
    more: Partial<Operation> & { onValue?: (value: unknown) => void; onState?: () => void } = {},
  ): Consumer {
    const { onValue, onState, ...op } = more;
    const seen = {
      envelopes: [] as Envelope[],
      values: [] as unknown[],
      errors: [] as Failure[],
      states: [] as string[],
      completed: 0,
    };
    const subscription = this.call(this.operation(input, op)).subscribe({
      next(envelope) {
        seen.envelopes.push(envelope);
        const { result } = envelope;
        if (result.type === 'state') {
          seen.states.push(result.state);
          onState?.();
        } else if (result.type === undefined || result.type === 'data') {
          const { data } = result.data as { data: unknown };
          seen.values.push(data);
          onValue?.(data);
        }
      },
      error: (error) => seen.errors.push(error),
      complete: () => {
        seen.completed += 1;
      },
    });
    return Object.assign(seen, { unsubscribe: () => subscription.unsubscribe() });
  }

  /** The attempt under way. */
  get last(): Attempt {
    const last = this.attempts.at(-1);
    if (last === undefined) throw new Error('nothing was subscribed to');
    return last;
  }

  /** The feed states that were told, by their names. */
  get told(): string[] {
    return this.states.map(({ state }) => state);
  }
}
