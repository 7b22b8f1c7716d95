import { expect, test } from 'vitest';
import { FeedRig, settled, subscribe } from '../test/support/feed-rig.ts';
import type { EncodedRun } from './push-target.ts';

/** A connection that keeps the values that it was pushed, and counts what was encoded. */
class Target {
  readonly values: unknown[] = [];
  readonly encoder;

  constructor(encoder: { encode(token: string, value: unknown): string }) {
    this.encoder = encoder;
  }

  isFull(): boolean {
    return false;
  }

  whenWritable(): void {}

  write(run: EncodedRun): void {
    for (const frame of run.frames) this.values.push(JSON.parse(frame));
  }
}

test.each([0, 1, 2, 3, 4, 5, 6, 7])(
  'a feed of which %i frames were pulled is pushed all others',
  async (pulled) => {
    const rig = new FeedRig();
    const encoder = {
      encode: (_token: string, value: unknown) => JSON.stringify(value),
    };
    const { reader, take } = await subscribe(rig.feed);
    // The pulled part ends inside a commit, at the end of one, or at the tip.
    await rig.append('a', 'b', 'c');
    await rig.append('d');
    await rig.append('e', 'f', 'g');
    const values = (await take(pulled)).map((frame) => frame.value);
    const target = new Target(encoder);
    const ended = reader.push(target);
    await settled();
    await rig.append('h');
    await settled();
    expect([...values, ...target.values]).toEqual(['a', 'b', 'c', 'd', 'e', 'f', 'g', 'h']);
    reader.close();
    await ended;
  },
);

test('those who were pulled the same share what is encoded of the rest', async () => {
  const rig = new FeedRig();
  let encoded = 0;
  const encoder = {
    encode(_token: string, value: unknown) {
      encoded += 1;
      return JSON.stringify(value);
    },
  };
  const subscriptions = await Promise.all(Array.from({ length: 20 }, () => subscribe(rig.feed)));
  await rig.append('a', 'b', 'c');
  const runs: EncodedRun[] = [];
  const targets = subscriptions.map(() => new Target(encoder));
  for (const [at, { reader, take }] of subscriptions.entries()) {
    await take(1);
    const target = targets[at] as Target;
    const write = target.write.bind(target);
    target.write = (run) => {
      runs.push(run);
      write(run);
    };
    void reader.push(target);
  }
  await settled();
  for (const target of targets) expect(target.values).toEqual(['b', 'c']);
  expect(encoded).toBe(2);
  expect(new Set(runs).size).toBe(1);
});
