import fc from 'fast-check';
import { expect, test } from 'vitest';
import { soaked } from '../../../test/support/soak.ts';
import { type PlayedEntry, PlayedLog } from '../test/support/played-log.ts';
import { type Consumer, lostLink, Rig } from '../test/support/rig.ts';

/** What happens to a log, to a link and to a server. */
type Step =
  | { readonly do: 'append'; readonly entries: number }
  | { readonly do: 'send'; readonly entries: number }
  | { readonly do: 'fail'; readonly how: 'lost' | 'unavailable' }
  | { readonly do: 'reconnect' }
  | { readonly do: 'move'; readonly entries: number }
  | { readonly do: 'trim'; readonly commits: number }
  | { readonly do: 'roll back'; readonly commits: number }
  | { readonly do: 'make anew' };

const some = fc.integer({ min: 1, max: 4 });
const steps: fc.Arbitrary<Step[]> = fc.array(
  fc.oneof(
    { weight: 4, arbitrary: fc.record({ do: fc.constant('append' as const), entries: some }) },
    {
      weight: 6,
      arbitrary: fc.record({
        do: fc.constant('send' as const),
        entries: fc.integer({ min: 1, max: 9 }),
      }),
    },
    {
      weight: 2,
      arbitrary: fc.record({
        do: fc.constant('fail' as const),
        how: fc.constantFrom('lost' as const, 'unavailable' as const),
      }),
    },
    { weight: 2, arbitrary: fc.record({ do: fc.constant('reconnect' as const) }) },
    { weight: 2, arbitrary: fc.record({ do: fc.constant('move' as const), entries: some }) },
    { weight: 1, arbitrary: fc.record({ do: fc.constant('trim' as const), commits: some }) },
    { weight: 1, arbitrary: fc.record({ do: fc.constant('roll back' as const), commits: some }) },
    { weight: 1, arbitrary: fc.record({ do: fc.constant('make anew' as const) }) },
  ),
  { maxLength: 60 },
);

/** A server and tRPC's link before it: what they would send to the link under test. */
class World {
  readonly #log = new PlayedLog();
  readonly #rig: Rig;
  readonly #consumer: Consumer;
  #queue: PlayedEntry[] = [];
  /** The token that tRPC's link would come back with by itself. */
  #sent: string | undefined;
  /** Commits before the place where the consumer was attached, afresh. */
  #from = 0;
  /** Values that the consumer got before that. */
  #before = 0;

  constructor() {
    this.#rig = new Rig({
      onFeedState: ({ state }) => {
        if (state === 'gap') this.#before = this.#consumer.values.length;
      },
    });
    this.#rig.onAttempt = ({ token }) => {
      this.#sent = typeof token === 'string' ? token : undefined;
      this.#attach();
    };
    this.#consumer = this.#rig.subscribe();
  }

  /** Demands that the consumer has the entries of the log from where it was attached, each once, in order. */
  check(): number {
    const received = this.#consumer.values.slice(this.#before);
    const names = this.#log.after(this.#from).map(({ name }) => name);
    expect(received).toEqual(names.slice(0, received.length));
    expect(this.#consumer.errors).toEqual([]);
    return names.length - received.length;
  }

  /** What a server does with the token that it is given, or without one: from the oldest entry. */
  #attach(): void {
    if (this.#sent === undefined) this.#from = this.#log.oldest;
    const from = this.#sent === undefined ? this.#from : this.#log.resume(this.#sent);
    this.#queue = typeof from === 'number' ? this.#log.after(from) : [];
    if (typeof from === 'string') this.#rig.last.refuse(from);
  }

  #sendOne(): PlayedEntry | undefined {
    const entry = this.#queue.shift();
    if (entry === undefined) return undefined;
    this.#sent = entry.token;
    this.#rig.last.frame(entry.token, entry.name);
    return entry;
  }

  step(step: Step): void {
    switch (step.do) {
      case 'append': {
        const { tip } = this.#log;
        this.#log.append(step.entries);
        this.#queue.push(...this.#log.after(tip));
        break;
      }
      case 'send':
        for (let n = 0; n < step.entries; n += 1) this.#sendOne();
        break;
      case 'fail': {
        if (this.#sent === undefined) return;
        if (step.how === 'lost') this.#rig.last.fail(lostLink());
        else this.#rig.last.refuse('unavailable');
        this.#rig.clock.advance(30_000);
        break;
      }
      case 'reconnect':
        this.#attach();
        break;
      case 'move': {
        // tRPC's WebSocket link asks the new socket to go on from here, while the old one still sends.
        const from = this.#sent;
        const sentMeanwhile = new Set<string>();
        for (let n = 0; n < step.entries; n += 1) sentMeanwhile.add(this.#sendOne()?.token ?? '');
        if (from === undefined) return;
        this.#sent = from;
        const { last } = this.#rig;
        this.#attach();
        // It drops what comes again by the text of its id, unless it was refused.
        if (this.#rig.last !== last) return;
        this.#queue = this.#queue.filter(({ token }) => !sentMeanwhile.delete(token));
        break;
      }
      case 'trim':
        this.#log.trim(step.commits);
        break;
      case 'roll back':
        this.#log.rollBack(step.commits);
        this.#rig.last.refuse('forked');
        break;
      case 'make anew':
        this.#log.makeAnew();
        this.#rig.last.refuse('epoch');
        break;
      default:
        step satisfies never;
    }
    this.#rig.clock.advance(30_000);
  }
}

test('from one gap to the next, a consumer gets each entry once, in order, and none is left out', () => {
  fc.assert(
    fc.property(steps, (history) => {
      const world = new World();
      for (const step of history) {
        world.step(step);
        world.check();
      }
      world.step({ do: 'send', entries: 1_000 });
      expect(world.check()).toBe(0);
    }),
    { numRuns: soaked(300) },
  );
});
