import type {
  BrokerLog,
  Commit,
  CommitBroker,
  CommitLog,
  Loss,
  Page,
  Position,
} from '@brokerfeed/core';
import { type RedisBrokerOptions, redisBroker } from '@brokerfeed/redis';
import { Redis } from 'ioredis';
import { inject } from 'vitest';

export interface TestTopic extends AsyncDisposable {
  readonly client: Redis;
  readonly broker: CommitBroker;
  readonly log: CommitLog;
  readonly prefix: string;
  readonly topic: string;
  readonly key: string;
  append(...values: string[]): Promise<Position[]>;
  /** What a reader at a position is told. */
  verdict(from: Position): Promise<Page['verdict']>;
  values(from: Position | 'earliest'): Promise<string[]>;
  tip(): Promise<Position>;
}

export interface TestTopicOptions extends Partial<RedisBrokerOptions> {
  /** @default the shared Redis of the run */
  readonly url?: string;
}

/** Opens a broker with a topic of its own. */
export function openTopic(options: TestTopicOptions = {}): TestTopic {
  const { url = inject('redisUrl'), ...rest } = options;
  // A test that brings a client of another mapping does not use this one's replies.
  const client = (rest.client as Redis | undefined) ?? new Redis(url);
  // Tests end servers under it, and ioredis prints errors that nobody listens to.
  if (rest.client === undefined) client.on('error', () => {});
  const prefix = rest.prefix ?? `test-${crypto.randomUUID()}`;
  const broker = redisBroker({ ...rest, client, prefix });
  const { log } = broker;
  const topic = 'orders';
  return {
    client,
    broker,
    log,
    prefix,
    topic,
    key: `${prefix}:${topic}`,
    async append(...values) {
      const positions: Position[] = [];
      for (const value of values) positions.push(await log.append(topic, value));
      return positions;
    },
    verdict: async (from) => (await log.page(topic, from, 10)).verdict,
    async values(from) {
      const page = await log.page(topic, from, 1000);
      if (page.verdict !== 'ok') throw new Error(`the page is refused: ${page.verdict}`);
      return valuesOf(page.commits);
    },
    tip: async () => (await log.bounds(topic)).last,
    async [Symbol.asyncDispose]() {
      await broker.close();
      if (rest.client === undefined) client.disconnect();
    },
  };
}

export function valuesOf(commits: readonly Commit[]): string[] {
  return commits.flatMap(({ entries }) => entries.map(({ value }) => value));
}

/** The element at an index, from the end where it is negative. */
export function at<T>(list: readonly T[], index: number): T {
  const found = list.at(index);
  if (found === undefined) throw new Error(`no element ${index} of ${list.length}`);
  return found;
}

/** A live read under way. */
export class LiveRead implements AsyncDisposable {
  readonly commits: Commit[] = [];
  readonly live: Promise<void>;
  readonly ended: Promise<Loss | undefined>;
  readonly #abort = new AbortController();
  readonly #looks = new Set<() => void>();

  constructor(log: BrokerLog, topic: string, from: Position) {
    const { promise, resolve } = deferred();
    const sink = {
      live: resolve,
      commits: (commits: readonly Commit[]) => {
        this.commits.push(...commits);
        for (const look of [...this.#looks]) look();
      },
    };
    this.ended = log.follow(topic, from, sink, this.#abort.signal);
    this.live = Promise.race([promise, this.ended.then(() => {})]);
    this.ended.catch(() => {});
    this.live.catch(() => {});
  }

  get values(): string[] {
    return valuesOf(this.commits);
  }

  /** Resolves with all values once there are so many commits; rejects where the read ends before. */
  async received(count: number): Promise<string[]> {
    const { promise, resolve } = deferred();
    const look = (): void => {
      if (this.commits.length >= count) resolve();
    };
    this.#looks.add(look);
    look();
    const early = this.ended.then((end) => {
      if (this.commits.length < count) throw new Error(`the read ended first: ${end}`);
    });
    await Promise.race([promise, early]).finally(() => this.#looks.delete(look));
    return this.values;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#abort.abort();
    await this.ended.catch(() => {});
  }
}

export async function liveRead({ log, topic }: TestTopic, from: Position): Promise<LiveRead> {
  const read = new LiveRead(log, topic, from);
  await read.live;
  return read;
}

/** Waits until something asked again and again is so. */
export async function eventually<T>(ask: () => Promise<T | undefined | false>): Promise<T> {
  const deadline = Date.now() + 10_000;
  for (;;) {
    const answer = await ask();
    if (answer !== undefined && answer !== false) return answer;
    await new Promise(setImmediate);
    if (Date.now() > deadline) throw new Error(`it never came: ${ask}`);
  }
}

/** The connections of a name, as CLIENT LIST shows them, with their last command. */
export async function connections(
  client: Redis,
  name: string,
): Promise<{ id: string; command: string }[]> {
  const list = String(await client.client('LIST'));
  return list
    .split('\n')
    .filter((line) => line.includes(` name=${name} `))
    .map((line) => ({
      id: /^id=(\d+)/.exec(line)?.[1] ?? '',
      command: /cmd=(\S+)/.exec(line)?.[1] ?? '',
    }));
}

function deferred(): { promise: Promise<void>; resolve: () => void } {
  let resolve = (): void => {};
  const promise = new Promise<void>((done) => {
    resolve = done;
  });
  return { promise, resolve };
}
