import { type FeedFrame, type FeedGap, type FeedReader, FeedRefusal } from '@brokerfeed/core';
import type { FeedControl } from '@brokerfeed/core/wire';
import {
  decodeFrame,
  type Expected,
  type Held,
  JSON_ENCODER,
  type Named,
  type Part,
  Standings,
} from './feed-laws-frames.ts';
import type { Address, FeedModel } from './feed-laws-model.ts';

/** What a law feed hands to its callbacks. */
export interface Args {
  readonly connection: Connection;
}

/** Gaps in a row, none of them followed by an entry, that a feed may answer with 503. */
const GAPS_BEFORE_503 = 5;

/** One connection of a client: every frame that comes is held against the model, at the moment it comes. */
export class Connection {
  readonly #model: FeedModel;
  readonly #tokens: Map<string, string>;
  readonly #parts: number;
  readonly #pushed: boolean;
  readonly #feed: string;
  readonly #mayBeInside: boolean;
  readonly #standings: Standings | undefined;
  readonly #onChange: () => void;
  readonly #onHeld: (held: Held) => void;
  readonly #abort = new AbortController();
  #expected: Expected;
  #credits: number;
  #credited: () => void = () => {};
  #part = 0;
  #gaps = 0;
  state: 'opening' | 'open' | 'closed' | 'gone' = 'opening';

  constructor(
    model: FeedModel,
    tokens: Map<string, string>,
    options: {
      expected: Expected;
      eager: boolean;
      parts: number;
      pushed: boolean;
      feed: string;
      mayBeInside: boolean;
      control: boolean;
    },
    onChange: () => void,
    onHeld: (held: Held) => void,
  ) {
    this.#model = model;
    this.#tokens = tokens;
    this.#expected = options.expected;
    this.#credits = options.eager ? Number.POSITIVE_INFINITY : 0;
    this.#parts = options.parts;
    this.#pushed = options.pushed;
    this.#feed = options.feed;
    this.#mayBeInside = options.mayBeInside;
    this.#standings = options.control ? new Standings() : undefined;
    this.#onChange = onChange;
    this.#onHeld = onHeld;
  }

  get signal(): AbortSignal {
    return this.#abort.signal;
  }

  get eager(): boolean {
    return this.#credits === Number.POSITIVE_INFINITY;
  }

  /** Whether all that was appended has come, or was part of a snapshot, and it was told so if it is told. */
  get caughtUp(): boolean {
    if (this.#standings?.isLive === false) return false;
    const { incarnation, tip } = this.#model;
    const expected = this.#expected;
    if (expected.kind === 'entry') {
      const { at } = expected;
      return at.incarnation === incarnation && at.commit === tip + 1;
    }
    // The values of a snapshot may still be on their way, which is no loss.
    return (
      expected.kind === 'before' &&
      expected.incarnation === incarnation &&
      expected.commit === tip + 1
    );
  }

  /** Reads until closed. Rejects with what breaks a law. */
  async run(open: () => Promise<FeedReader>): Promise<void> {
    try {
      const reader = await open();
      if (this.state === 'opening') this.state = 'open';
      this.#opened();
      this.#onChange();
      if (this.#pushed) await this.#beingPushed(reader);
      else await this.#pull(reader);
      if (this.state === 'open') throw new Error('the feed ended by itself, without an error');
    } catch (error) {
      if (this.state === 'closed' && error instanceof FeedRefusal) return;
      this.state = 'gone';
      this.#refused(error);
    } finally {
      this.#onChange();
    }
  }

  async #pull(reader: FeedReader): Promise<void> {
    while (await this.#credit()) {
      const frame = await reader.next();
      if (frame === undefined) break;
      this.#see(frame);
      this.#onChange();
    }
  }

  /** Takes frames as a socket does: full while it has no credit, and a run at a time. */
  async #beingPushed(reader: FeedReader): Promise<void> {
    let broken: { readonly error: unknown } | undefined;
    await reader.push({
      encoder: JSON_ENCODER,
      isFull: () => this.#credits <= 0,
      whenWritable: (callback) => {
        this.#credited = () => {
          if (this.#credits > 0 || this.signal.aborted) callback();
        };
      },
      write: ({ frames }) => {
        try {
          for (const frame of frames) this.#see(decodeFrame(frame));
        } catch (error) {
          broken ??= { error };
          this.#abort.abort();
        }
        this.#credits -= frames.length;
        this.#onChange();
      },
    });
    if (broken !== undefined) throw broken.error;
  }

  /** Lets it read some frames, or all to come. */
  credit(frames: number): void {
    this.#credits += frames;
    this.#credited();
  }

  close(): void {
    if (this.state !== 'gone') this.state = 'closed';
    this.#abort.abort();
    this.#credited();
  }

  /** What `onGap` does: checks that the gap is one, and makes a snapshot of the model as it is now. */
  async snapshot(gap: FeedGap): Promise<unknown> {
    this.#told(gap.reason);
    this.#gaps += 1;
    this.#part = 0;
    const { incarnation, tip } = this.#model;
    this.#expected = { kind: 'before', incarnation, commit: tip + 1 };
    this.#onChange();
    const parts = this.#parts;
    // Appends of the run come in between.
    for (let turn = 0; turn < parts * 3; turn += 1) await null;
    if (parts === 0) return undefined;
    if (parts === 1) return { part: 0, of: 1 } satisfies Part;
    if (parts === 2) return [0, 1].map((part): Part => ({ part, of: parts }));
    return (async function* () {
      for (let part = 0; part < parts; part += 1) {
        await null;
        yield { part, of: parts } satisfies Part;
      }
    })();
  }

  /** Fixes what was left open until the feed stood: what is appended from here on must come. */
  #opened(): void {
    const { incarnation, tip } = this.#model;
    const expected = this.#expected;
    if (expected.kind === 'oldest') this.#expected = { ...expected, until: incarnation };
    else if (expected.kind === 'before' && expected.commit === Number.POSITIVE_INFINITY)
      this.#expected = { kind: 'before', incarnation, commit: tip + 1 };
  }

  #see({ token, value }: FeedFrame): void {
    if (typeof value === 'object' && value !== null) {
      if ('feed' in value) {
        const { feed } = value as FeedControl;
        if (this.#standings === undefined) throw new Error(`told '${feed}', unasked`);
        this.#standings.see(feed);
        if (feed === 'live') this.#checkLive();
        const mayBeInside = feed === 'catching-up' || feed === 'outage';
        this.#onHeld({ token, expected: this.#resumeBetween(), mayBeInside });
        return;
      }
      this.#standings?.see('value');
      if ('part' in value) {
        this.#seePart(token, value as Part);
        return;
      }
    }
    const { generation, place, by, ...entry } = value as Named;
    if (generation !== entry.commit || place !== entry.index)
      throw new Error(`entry ${show(entry)} is said to be at ${generation}/${place}`);
    if (by !== this.#feed) throw new Error(`got a value of feed '${by}' from '${this.#feed}'`);
    if (!this.#allows(entry))
      throw new Error(`got entry ${show(entry)} where ${show(this.#expected)} was to come`);
    const key = show(entry);
    const known = this.#tokens.get(key) ?? token;
    if (known !== token) throw new Error(`entry ${key} has two tokens`);
    this.#tokens.set(key, token);
    this.#gaps = 0;
    this.#expected = { kind: 'entry', at: this.#model.after(entry) };
    this.#hold(token, { kind: 'entry', at: this.#model.resumedAfter(entry) });
  }

  #checkLive(): void {
    const expected = this.#expected;
    if (!this.#partsDone) throw new Error('live inside a snapshot');
    if (expected.kind === 'entry' && expected.at.index > 0)
      throw new Error(`live before ${show(expected.at)}, inside a commit`);
  }

  #seePart(token: string, { part, of }: Part): void {
    if (part !== this.#part || of !== this.#parts)
      throw new Error(`got part ${part} of a snapshot where ${this.#part} was to come`);
    this.#part += 1;
    this.#hold(token, this.#part === of ? this.#expected : { kind: 'snapshot' });
  }

  #allows(entry: Address): boolean {
    const expected = this.#expected;
    switch (expected.kind) {
      case 'entry':
        return show(entry) === show(expected.at);
      case 'before':
        return (
          this.#partsDone &&
          entry.index === 0 &&
          (entry.incarnation < expected.incarnation ||
            (entry.incarnation === expected.incarnation && entry.commit <= expected.commit))
        );
      case 'oldest':
        return (
          entry.index === 0 &&
          entry.incarnation >= expected.incarnation &&
          entry.incarnation <= expected.until &&
          (entry.incarnation > expected.incarnation || entry.commit >= expected.commit) &&
          entry.commit <= this.#model.trimmed(entry.incarnation) + 1
        );
      case 'snapshot':
        return false;
      default:
        return expected satisfies never;
    }
  }

  get #partsDone(): boolean {
    return this.#gaps === 0 || this.#part === this.#parts;
  }

  /** What the token of a control frame stands for: the place before the commit that is to come. */
  #resumeBetween(): Expected {
    const expected = this.#expected;
    if (!this.#partsDone) return { kind: 'snapshot' };
    return expected.kind === 'entry'
      ? { kind: 'entry', at: { ...expected.at, index: 0 } }
      : expected;
  }

  #hold(token: string, expected: Expected): void {
    this.#onHeld({ token, expected, mayBeInside: false });
  }

  #refused(error: unknown): void {
    if (!(error instanceof FeedRefusal)) throw error;
    if (error.status === 410) this.#told(error.reason);
    else if (error.reason !== 'unavailable' || this.#gaps < GAPS_BEFORE_503)
      throw new Error(`the feed was refused: ${error.reason}`, { cause: error });
  }

  /** Checks that a loss which the feed tells is one. */
  #told(reason: string): void {
    const expected = this.#expected;
    // Whoever holds a token from inside a snapshot is told just that, and nobody else is.
    if (reason === 'snapshot' && this.#mayBeInside) return;
    if ((expected.kind === 'snapshot') !== (reason === 'snapshot'))
      throw new Error(`told '${reason}' where ${show(expected)} was to come`);
    if (expected.kind === 'entry') {
      const loss = this.#model.lossBefore(expected.at);
      if (expected.at.index > 0) throw new Error(`told '${reason}' inside a commit`);
      // A trim may be followed by a delete before it is noticed, and the other way round there is nothing to trim.
      if (loss === undefined || (reason === 'epoch' && loss !== 'epoch'))
        throw new Error(`told '${reason}' before ${show(expected.at)}, where the loss is ${loss}`);
    }
  }

  async #credit(): Promise<boolean> {
    while (this.#credits === 0 && !this.signal.aborted) {
      await new Promise<void>((resolve) => {
        this.#credited = resolve;
      });
    }
    this.#credits -= 1;
    return !this.signal.aborted;
  }
}

function show(value: object): string {
  return JSON.stringify(value);
}
