import type { FeedFrame, FeedReader, FrameEncoder } from '../../src/index.ts';
import { FeedRig, settled, TOPIC } from './feed-rig.ts';

/** What a run does, in order. */
export type Step =
  | { readonly do: 'append'; readonly entries: number }
  | {
      readonly do: 'connect';
      readonly from: 'latest' | 'earliest';
      readonly pushed: boolean;
      readonly eager: boolean;
      /** The token that it sends: none, or one that it got so many frames before. */
      readonly token: 'none' | number;
    }
  | { readonly do: 'read'; readonly frames: number }
  | { readonly do: 'trim'; readonly keep: number }
  | { readonly do: 'break' }
  | { readonly do: 'mend' };

export interface Setup {
  readonly highWaterMark: number;
  readonly slow: boolean;
  readonly snapshot: boolean;
}

type Value =
  | { readonly feed: string }
  | { readonly snapshot: number }
  | { readonly commit: number };

const RETRY_MS = 250;
const MAX_TURNS = 2_000;

const ENCODER: FrameEncoder = {
  encode: (token, value) => JSON.stringify({ token, value }),
};

/** One connection: every frame is held against what it was told before, and against the world as it is then. */
class Client {
  readonly frames: FeedFrame[] = [];
  readonly #world: StandingWorld;
  readonly #abort = new AbortController();
  /** Commits of the log when it was attached. */
  readonly #attachedAt: number;
  #credits: number;
  #drained: () => void = () => {};
  standing: string | undefined;
  #last: string | undefined;

  constructor(world: StandingWorld, attachedAt: number, eager: boolean) {
    this.#world = world;
    this.#attachedAt = attachedAt;
    this.#credits = eager ? Number.POSITIVE_INFINITY : 0;
  }

  get signal(): AbortSignal {
    return this.#abort.signal;
  }

  get eager(): boolean {
    return this.#credits === Number.POSITIVE_INFINITY;
  }

  credit(frames: number): void {
    this.#credits += frames;
    this.#drained();
  }

  close(): void {
    this.#abort.abort();
    this.#drained();
  }

  async pull(reader: FeedReader): Promise<void> {
    while (!this.signal.aborted) {
      if (this.#credits <= 0) {
        await new Promise<void>((resolve) => {
          this.#drained = resolve;
        });
        continue;
      }
      const frame = await reader.next();
      if (frame === undefined) return;
      this.#credits -= 1;
      this.see(frame);
    }
  }

  push(reader: FeedReader): Promise<void> {
    return reader.push({
      encoder: ENCODER,
      isFull: () => this.#credits <= 0,
      whenWritable: (callback) => {
        this.#drained = () => {
          if (this.#credits > 0 || this.signal.aborted) callback();
        };
      },
      write: ({ frames }) => {
        this.#credits -= frames.length;
        for (const text of frames) this.see(JSON.parse(text));
      },
    });
  }

  see(frame: FeedFrame): void {
    this.frames.push(frame);
    const value = frame.value as Value;
    const said = 'feed' in value ? value.feed : 'snapshot' in value ? 'snapshot' : 'entry';
    if (said === 'attached' && this.#last !== undefined) this.#broken('attached twice');
    if (
      this.#last === undefined &&
      said !== 'attached' &&
      said !== 'catching-up' &&
      said !== 'outage'
    )
      this.#broken(`first of all, ${said}`);
    if (this.#last === 'attached' && said !== 'catching-up' && said !== 'live' && said !== 'outage')
      this.#broken(`${said} before it is told how it stands`);
    if ('commit' in value && this.standing === 'live' && value.commit <= this.#attachedAt)
      this.#broken(`live before commit ${value.commit} of ${this.#attachedAt}`);
    if (said === 'snapshot' && this.standing === 'live') this.#broken('live in a snapshot');
    if (said === 'live' && this.#world.isBroken) this.#broken('live in an outage');
    if (said === 'catching-up' || said === 'live' || said === 'outage') {
      if (said === this.standing) this.#broken(`${said} twice`);
      this.standing = said;
    }
    this.#last = said;
  }

  #broken(what: string): void {
    this.#world.failure ??= new Error(what);
  }
}

/** A topic whose live read breaks and is mended, and one client after another. */
export class StandingWorld {
  readonly #rig: FeedRig;
  readonly #feeds;
  #client: Client | undefined;
  #held: readonly FeedFrame[] = [];
  #commits = 0;
  isBroken = false;
  failure: Error | undefined;

  constructor({ highWaterMark, slow, snapshot }: Setup) {
    const options = {
      highWaterMark,
      control: true,
      lingerMs: 2 ** 30,
      ...(slow && { map: async (value: unknown) => value }),
      ...(snapshot && {
        onGap: async function* () {
          for (const part of [1, 2]) yield await { snapshot: part };
        },
      }),
    };
    this.#rig = new FeedRig(options);
    this.#feeds = {
      latest: this.#rig.feed,
      earliest: this.#rig.another({ ...options, from: 'earliest' }),
    };
  }

  async run(steps: readonly Step[]): Promise<void> {
    for (const step of steps) await this.#step(step);
    await this.#step({ do: 'mend' });
    await this.#step({ do: 'read', frames: Number.POSITIVE_INFINITY });
    this.#client?.close();
  }

  async #step(step: Step): Promise<void> {
    switch (step.do) {
      case 'append':
        this.#commits += 1;
        await this.#rig.append(
          ...Array.from({ length: step.entries }, () => ({ commit: this.#commits })),
        );
        break;
      case 'connect':
        await this.#connect(step);
        break;
      case 'read':
        this.#client?.credit(step.frames);
        break;
      case 'trim':
        this.#rig.trim(step.keep);
        break;
      case 'break':
        if (this.#rig.log.reads === 0) return;
        this.isBroken = true;
        this.#rig.log.breakReads();
        await this.#rig.clock.untilWait(RETRY_MS);
        break;
      case 'mend':
        if (!this.isBroken) return;
        this.isBroken = false;
        this.#rig.clock.advance(RETRY_MS);
        await this.#rig.log.untilReads(1);
        break;
      default:
        step satisfies never;
    }
    await this.#quiet();
    if (this.failure !== undefined) throw this.failure;
  }

  async #connect({ from, pushed, eager, token }: Step & { do: 'connect' }): Promise<void> {
    const before = this.#client;
    before?.close();
    if (before !== undefined) this.#held = [...this.#held, ...before.frames];
    const client = new Client(this, this.#commits, eager);
    this.#client = undefined;
    const reader = await this.#feeds[from]
      .open({
        topic: TOPIC,
        lastEventId: token === 'none' ? undefined : this.#held.at(-1 - token)?.token,
        args: {},
        signal: client.signal,
      })
      .catch(() => undefined);
    if (reader === undefined) return;
    this.#client = client;
    // A gap without a snapshot ends it.
    const left = (): void => {
      if (this.#client === client) this.#client = undefined;
    };
    (pushed ? client.push(reader) : client.pull(reader)).then(left, left);
  }

  /** Waits until whoever reads all that comes was told how it stands. */
  async #quiet(): Promise<void> {
    await settled();
    for (let turn = 0; turn < MAX_TURNS; turn += 1) {
      const client = this.#client;
      const standing = this.isBroken ? 'outage' : 'live';
      if (this.failure !== undefined || !client?.eager || client.standing === standing) return;
      await settled();
    }
    this.failure = new Error(`told ${this.#client?.standing} in the end`);
  }
}
