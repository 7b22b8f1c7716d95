import { checkTopic } from './append-check.ts';
import type { Broker, BrokerLog } from './broker.ts';
import { Delivery } from './delivery.ts';
import { type FeedOptions, resolveFeedOptions } from './feed-options.ts';
import { type FeedReader, SessionReader } from './feed-reader.ts';
import { FeedRefusal, toRefusal } from './feed-refusal.ts';
import { FeedSession, type FeedShared, type FeedStart } from './feed-session.ts';
import { refuseOption } from './option-check.ts';
import { SnapshotLoads } from './snapshot.ts';
import { type TokenScope, TokenSigner } from './token-signer.ts';

/** One subscriber's wish to read a topic. */
export interface FeedRequest<A extends object> {
  readonly topic: unknown;
  /** The token that the peer sent, unchecked. Undefined, null and the empty text ask for a fresh subscription. */
  readonly lastEventId: unknown;
  /** Handed to every callback. */
  readonly args: A;
  /** Ends the subscription. */
  readonly signal: AbortSignal;
}

/** What all subscriptions of one topic share. */
interface SharedTopic<A extends object> {
  readonly delivery: Delivery<A>;
  /** That of all whose tokens are bound to no audience. */
  readonly scope: TokenScope;
}

/**
 * Maps subscriptions onto topics of a log: tokens, replay, live entries, gaps and snapshots, whatever carries them to the
 * client.
 */
export class Feed<A extends object = object> {
  readonly #shared: FeedShared<A>;
  readonly #topics = new Map<string, SharedTopic<A>>();

  /** Checks every option. Throws `OPTION_INVALID`; the sentence names the option. */
  constructor(source: Broker | BrokerLog, options: FeedOptions<A> = {}) {
    const resolved = resolveFeedOptions(options);
    const log = logOf(source);
    const signer = new TokenSigner(resolved.secrets, resolved.maxIdLength);
    if (!signer.signs) warnUnsigned(log);
    this.#shared = {
      log,
      options: resolved,
      signer,
      snapshots: new SnapshotLoads(),
      release: (topic) => {
        if (this.#topics.get(topic)?.delivery.release()) this.#topics.delete(topic);
      },
    };
  }

  /**
   * Opens a subscription: checks the token, fixes the live position and reads the first page. Rejects with a
   * {@link FeedRefusal}. Everything appended after it resolved will be read.
   */
  async open(request: FeedRequest<A>): Promise<FeedReader> {
    const { args, signal } = request;
    const topic = topicOf(request.topic);
    const scope: TokenScope = { topic, audience: await this.#audience(args) };
    const start = this.#check(request.lastEventId, scope);
    const shared = this.#topic(topic, scope);
    shared.delivery.acquire();
    const bound = scope.audience === undefined ? shared.scope : scope;
    const session = new FeedSession(this.#shared, shared.delivery, bound, args, signal);
    try {
      await session.start(start);
    } catch (error) {
      session.close();
      throw toRefusal(error);
    }
    return new SessionReader(session);
  }

  async #audience(args: A): Promise<string | undefined> {
    const { bind } = this.#shared.options;
    if (bind === undefined) return undefined;
    const audience: unknown = await bind(args);
    // Ill-formed text has no bytes of its own: two such audiences would share their tokens.
    if (typeof audience !== 'string' || !audience.isWellFormed())
      throw new FeedRefusal('topic', { cause: new TypeError('bind answered no text') });
    return audience;
  }

  #check(token: unknown, scope: TokenScope): FeedStart {
    const { log, options, signer } = this.#shared;
    if (token === undefined || token === null || token === '') return { kind: 'fresh' };
    const verdict = signer.verify(token, scope);
    const text = typeof token === 'string' ? token : undefined;
    if (verdict.ok) return { kind: 'resume', fields: verdict.fields, token: token as string };
    const { reason } = verdict;
    log.observer.meter.count('brokerfeed.feed.resumes', 1, { outcome: reason });
    // Only a failed mac smells of tampering. The text never reaches the log.
    const level = reason === 'signature' ? 'warn' : 'debug';
    log.observer.logger[level](
      { topic: scope.topic, reason, length: text?.length },
      'brokerfeed.feed.resume',
    );
    const refusal = new FeedRefusal(reason);
    if (options.onGap === undefined) throw refusal;
    return { kind: 'gap', refusal, token: text };
  }

  #topic(topic: string, scope: TokenScope): SharedTopic<A> {
    let shared = this.#topics.get(topic);
    if (shared === undefined) {
      const delivery = new Delivery(topic, this.#shared.options, this.#shared.log.observer);
      shared = { delivery, scope };
      this.#topics.set(topic, shared);
    }
    return shared;
  }
}

function topicOf(topic: unknown): string {
  try {
    checkTopic(topic);
    return topic;
  } catch (error) {
    throw new FeedRefusal('topic', { cause: error });
  }
}

function logOf(source: Broker | BrokerLog): BrokerLog {
  const log: unknown =
    source !== null && typeof source === 'object' && 'log' in source ? source.log : source;
  for (const method of ['append', 'page', 'follow', 'bounds']) {
    if (typeof (log as Record<string, unknown> | null | undefined)?.[method] !== 'function') {
      const name = (source as { name?: unknown } | null | undefined)?.name;
      refuseOption(
        'broker',
        `a broker or its log${typeof name === 'string' ? ` (${name} has no ${method})` : ''}`,
        source,
      );
    }
  }
  return log as BrokerLog;
}

let warned = false;

function warnUnsigned(log: BrokerLog): void {
  if (warned || process.env.NODE_ENV !== 'production') return;
  warned = true;
  log.observer.logger.warn({}, 'brokerfeed.feed.unsigned');
}
