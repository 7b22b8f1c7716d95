import { randomBytes } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { TestMeter } from '../../../test/support/observed.ts';
import { type LogLine, logLines } from '../test/support/log-lines.ts';
import { ManualClock } from '../test/support/manual-clock.ts';
import type { Broker, Entry, Headers } from './broker.ts';
import { announce, Feed, type SealedOptions, type SealKey, sealed, watch } from './index.ts';
import { memoryBroker, memoryStore } from './memory/index.ts';

const T = 'orders';
const A = keyOf('a');
const B = keyOf('b');

describe('what the store sees', () => {
  test('is neither a value nor a header, and reads back as it was', async () => {
    const { plain, broker } = rig();
    const headers = { traceparent: '00-secret-01', ['__proto__']: 'an ordinary name' };
    await broker.log.append(T, ['the secret', '', 'žluťoučký 🐎'], { headers });
    await broker.log.append(T, 'without headers');
    const stored = JSON.stringify(await entriesOf(plain));
    for (const text of ['secret', 'traceparent', 'žlu', 'without']) {
      expect(stored).not.toContain(text);
    }
    const entries = await entriesOf(broker);
    expect(entries.map((entry) => entry.value)).toEqual([
      'the secret',
      '',
      'žluťoučký 🐎',
      'without headers',
    ]);
    expect(Object.entries(entries[0]?.headers ?? {})).toEqual([
      ['traceparent', '00-secret-01'],
      ['__proto__', 'an ordinary name'],
    ]);
    expect(Object.getPrototypeOf(entries[0]?.headers)).toBe(null);
    expect(entries[3]?.headers).toEqual({});
  });

  test('differs for the same value, but with an idempotency key is the same', async () => {
    const { plain, broker } = rig();
    await broker.log.append(T, ['a', 'a']);
    await broker.log.append(T, 'a', { idempotencyKey: 'k' });
    await broker.log.append('another', 'a', { idempotencyKey: 'k' });
    await broker.log.append(T, 'a', { idempotencyKey: 'l' });
    const stored = [...(await entriesOf(plain)), ...(await entriesOf(plain, 'another'))];
    expect(new Set(stored.map((entry) => entry.value)).size).toBe(5);
  });

  test('is sealed for announcements too, and opened once for all who hear', async () => {
    const { plain, broker, meter } = rig();
    await using overheard = await watch(plain, T);
    await using one = await watch(broker, T);
    await using other = await watch(broker, T);
    announce(broker, T, () => 'the secret');
    expect(await one.next()).toEqual({ kind: 'announcement', topic: T, value: 'the secret' });
    expect(await other.next()).toMatchObject({ value: 'the secret' });
    expect(JSON.stringify(await overheard.next())).not.toContain('secret');
    expect(meter.of('brokerfeed.sealed.opened')).toBe(1);
    expect(() => announce(broker, T, '\ud800')).toThrow(
      expect.objectContaining({ code: 'VALUE_INVALID' }),
    );
  });
});

describe('a repeated append with an idempotency key', () => {
  test('is known again, whatever its headers', async () => {
    const { broker } = rig();
    const once = { idempotencyKey: 'k' };
    const first = await broker.log.append(T, ['a', 'b'], { ...once, headers: { try: '1' } });
    expect(await broker.log.append(T, ['a', 'b'], { ...once, headers: { try: '2' } })).toEqual(
      first,
    );
    expect(await entriesOf(broker)).toHaveLength(2);
    await expect(broker.log.append(T, ['a', 'c'], once)).rejects.toMatchObject({
      code: 'IDEMPOTENCY_CONFLICT',
    });
  });

  test('is known again by an instance whose keys have changed, or that seals while the other does not yet', async () => {
    const { plain, broker } = rig();
    const once = { idempotencyKey: 'k' };
    const first = await broker.log.append(T, 'a', once);
    const changed = sealed(plain, { keys: [B, A] });
    expect(await changed.log.append(T, 'a', once)).toEqual(first);
    const reading = sealed(plain, { keys: [B, A], seal: false, acceptPlaintext: true });
    expect(await reading.log.append(T, 'a', once)).toEqual(first);

    const early = await reading.log.append('early', 'a', once);
    const rolling = sealed(plain, { keys: [A], acceptPlaintext: true });
    expect(await rolling.log.append('early', 'a', once)).toEqual(early);
    await expect(broker.log.append('early', 'a', once)).rejects.toMatchObject({
      code: 'IDEMPOTENCY_CONFLICT',
    });
  });
});

describe('what does not open', () => {
  test('is unreadable for its reason, at its own address, and the rest of the topic is read', async () => {
    const { plain, broker, meter } = rig();
    await broker.log.append('elsewhere', 'moved');
    const [moved] = await entriesOf(plain, 'elsewhere');
    await broker.log.append(T, ['before']);
    await plain.log.append(T, 'plain');
    await sealed(plain, { keys: [B] }).log.append(T, 'by an unknown key');
    await plain.log.append(T, moved?.value as string, { headers: moved?.headers as Headers });
    await plain.log.append(T, 'bfs1.a.tooshort');
    await broker.log.append(T, 'after');
    const entries = await entriesOf(broker);
    expect(entries.map((entry) => entry.unreadable ?? entry.value)).toEqual([
      'before',
      refusal('unsealed'),
      refusal('kid'),
      refusal('open'),
      refusal('format'),
      'after',
    ]);
    expect(entries.map((entry) => entry.value)).toEqual(['before', '', '', '', '', 'after']);
    for (const reason of ['unsealed', 'kid', 'open', 'format']) {
      expect(meter.of(`brokerfeed.sealed.refused ${reason}`)).toBe(1);
    }
  });

  test.each<[string, (entries: readonly Entry[]) => readonly Entry[], string]>([
    ['an entry left out', ([first]) => [first as Entry], 'open'],
    ['entries in another order', ([first, second]) => [second, first] as Entry[], 'open'],
    ['the headers taken off', (all) => all.map(({ value }) => ({ value, headers: {} })), 'format'],
    ['one bit changed', ([first, second]) => [flipped(first as Entry), second as Entry], 'open'],
  ])('is a commit with %s', async (_, forge, reason) => {
    const { plain, broker } = rig();
    await broker.log.append('original', ['a', 'b'], { headers: { name: 'x' } });
    const forged = forge(await entriesOf(plain, 'original'));
    // Written under the very topic it was sealed for.
    const store = memoryBroker();
    await store.log.append(
      'original',
      forged.map((entry) => entry.value),
      { headers: forged[0]?.headers as Headers },
    );
    const entries = await entriesOf(sealed(store, { keys: [A] }), 'original');
    expect(entries.map((entry) => entry.unreadable)).toContainEqual(refusal(reason));
  });

  test('is an entry that somebody announces, and plain text that is announced', async () => {
    const { plain, broker, meter } = rig();
    await broker.log.append(T, 'an old order');
    const [stored] = await entriesOf(plain);
    await using heard = await watch(broker, T);
    announce(plain, T, stored?.value as string);
    announce(plain, T, 'plain');
    announce(broker, T, 'real');
    expect(await heard.next()).toMatchObject({ value: 'real' });
    expect(meter.of('brokerfeed.sealed.refused open')).toBe(1);
    expect(meter.of('brokerfeed.sealed.refused unsealed')).toBe(1);
  });

  test('is told to the log once a reason and ten seconds, and summed up at the end', async () => {
    const { plain, broker, clock, lines } = rig();
    for (let count = 0; count < 3; count += 1) await plain.log.append(T, 'plain');
    const read = async (): Promise<void> => {
      for (const entry of await entriesOf(broker)) expect(entry.unreadable).toBeDefined();
    };
    await read();
    expect(lines.map(({ level, fields }) => [level, fields.count])).toEqual([
      ['warn', 1],
      ['debug', 2],
      ['debug', 3],
    ]);
    expect(lines[1]?.fields).toMatchObject({
      topic: T,
      generation: 2,
      index: 0,
      reason: 'unsealed',
    });
    clock.advance(10_000);
    await read();
    expect(lines[3]).toMatchObject({ level: 'warn', fields: { count: 4 } });
    await broker.close();
    expect(lines.at(-1)).toEqual({
      level: 'info',
      event: 'brokerfeed.sealed.refused.total',
      fields: { reason: 'unsealed', count: 6 },
    });
  });

  test.each(['skip', 'end'] as const)(
    'is left out of a feed that takes any text, or ends it: %s',
    async (onEntryError) => {
      const { plain, broker, meter } = rig();
      const feed = new Feed(broker, {
        decode: 'text',
        from: 'earliest',
        lingerMs: 0,
        onEntryError,
      });
      await plain.log.append(T, 'forged');
      await broker.log.append(T, 'real');
      const abort = new AbortController();
      const reader = await feed.open({ topic: T, lastEventId: '', args: {}, signal: abort.signal });
      if (onEntryError === 'skip') expect(await reader.next()).toMatchObject({ value: 'real' });
      else await expect(reader.next()).rejects.toMatchObject({ reason: 'entry', status: 422 });
      expect(meter.of('brokerfeed.sealed.refused')).toBe(1);
      expect(meter.of('brokerfeed.feed.refused')).toBe(0);
      abort.abort();
    },
  );

  test('is left out of a watch, and of a feed', async () => {
    const { plain, broker } = rig();
    await using watching = await watch(broker, T);
    const feed = new Feed(broker, { from: 'earliest', lingerMs: 0 });
    await plain.log.append(T, '"forged"');
    await broker.log.append(T, '"real"');
    const abort = new AbortController();
    const reader = await feed.open({ topic: T, lastEventId: '', args: {}, signal: abort.signal });
    expect(await reader.next()).toMatchObject({ value: 'real' });
    expect(await watching.next()).toMatchObject({ entry: { value: '"real"' } });
    abort.abort();
  });
});

describe('opening', () => {
  test('is done once for five subscribers and a watch, refusing too; who reads from the oldest opens its own', async () => {
    const { plain, broker, meter } = rig();
    const feed = new Feed(broker, { lingerMs: 0 });
    const abort = new AbortController();
    const open = (from: Feed) =>
      from.open({ topic: T, lastEventId: '', args: {}, signal: abort.signal });
    const readers = await Promise.all([1, 2, 3, 4, 5].map(() => open(feed)));
    await using watching = await watch(broker, T);
    await broker.log.append(T, ['1', '2']);
    await plain.log.append(T, 'plain');
    await broker.log.append(T, '3');
    const read = async (reader: (typeof readers)[number]): Promise<unknown[]> => [
      (await reader.next())?.value,
      (await reader.next())?.value,
      (await reader.next())?.value,
    ];
    for (const values of await Promise.all(readers.map(read))) expect(values).toEqual([1, 2, 3]);
    for (const value of ['1', '2', '3']) {
      expect(await watching.next()).toMatchObject({ entry: { value } });
    }
    expect(meter.of('brokerfeed.sealed.opened')).toBe(3);
    expect(meter.of('brokerfeed.sealed.refused')).toBe(1);

    const late = await open(new Feed(broker, { from: 'earliest', lingerMs: 0 }));
    expect(await read(late)).toEqual([1, 2, 3]);
    expect(meter.of('brokerfeed.sealed.opened')).toBe(6);
    abort.abort();
  });

  test('waits until somebody reads', async () => {
    const { broker, meter } = rig();
    await broker.log.append(T, 'a');
    const page = await broker.log.page(T, 'earliest', 10);
    expect(page.verdict).toBe('ok');
    expect(meter.of('brokerfeed.sealed.opened')).toBe(0);
  });

  test('is possible with every key of the ring, and seals with the first', async () => {
    const { plain, broker } = rig();
    await broker.log.append(T, 'by a');
    const second = sealed(plain, { keys: [B, A] });
    await second.log.append(T, 'by b');
    expect((await entriesOf(second)).map((entry) => entry.value)).toEqual(['by a', 'by b']);
    const last = sealed(plain, { keys: [B] });
    expect((await entriesOf(last)).map((entry) => entry.unreadable)).toEqual([
      refusal('kid'),
      undefined,
    ]);
  });
});

test('a roll-out loses nothing: first all can open, then all seal, then plain text is refused', async () => {
  const { plain } = rig();
  const reading = sealed(plain, { keys: [A], seal: false, acceptPlaintext: true });
  const sealing = sealed(plain, { keys: [A], acceptPlaintext: true });
  await using heard = await watch(sealing, T, { only: 'announcements' });
  await reading.log.append(T, 'one', { headers: { name: 'x' } });
  await sealing.log.append(T, 'two');
  announce(reading, T, 'plainly');
  for (const broker of [reading, sealing]) {
    const entries = await entriesOf(broker);
    expect(entries.map((entry) => entry.value)).toEqual(['one', 'two']);
    expect(entries[0]?.headers).toEqual({ name: 'x' });
  }
  expect(heard.tryNext()).toMatchObject({ value: 'plainly' });
  const strict = await entriesOf(sealed(plain, { keys: [A] }));
  expect(strict.map((entry) => entry.unreadable)).toEqual([refusal('unsealed'), undefined]);
});

test('closing it closes the broker', async () => {
  const { plain, broker } = rig();
  await broker.close();
  await expect(plain.log.append(T, 'a')).rejects.toMatchObject({ code: 'CLOSED' });
});

test.each<[string, unknown]>([
  ['options', null],
  ['keys', {}],
  ['keys', { keys: [] }],
  ['keys', { keys: [A, { ...B, id: 'a' }] }],
  ['keys\\[0\\].id', { keys: [{ ...A, id: 'a.b' }] }],
  ['keys\\[0\\].id', { keys: [undefined] }],
  ['keys\\[1\\].key', { keys: [A, { id: 'b', key: 'a passphrase' }] }],
  ['keys\\[0\\].key', { keys: [{ id: 'a', key: randomBytes(16) }] }],
  ['keys\\[0\\].key', { keys: [{ id: 'a', key: undefined }] }],
  ['seal', { keys: [A], seal: 'no' }],
  ['seal', { keys: [A], seal: false }],
  ['acceptPlaintext', { keys: [A], acceptPlaintext: 1 }],
])('%s is refused by name in %o', (option, options) => {
  expect(() => sealed(memoryBroker(), options as SealedOptions)).toThrow(
    expect.objectContaining({
      code: 'OPTION_INVALID',
      message: expect.stringMatching(new RegExp(`^${option} is `)),
    }),
  );
});

test('a key is 32 bytes, or their base64, base64url or hex, and the same key in each form', async () => {
  const { plain } = rig();
  const bytes = randomBytes(32);
  const forms = [
    bytes,
    ...(['base64', 'base64url', 'hex'] as const).map((as) => bytes.toString(as)),
  ];
  for (const key of forms) await sealed(plain, { keys: [{ id: 'a', key }] }).log.append(T, 'x');
  for (const key of forms) {
    const entries = await entriesOf(sealed(plain, { keys: [{ id: 'a', key }] }));
    expect(entries.map((entry) => entry.value)).toEqual(['x', 'x', 'x', 'x']);
  }
});

test('a key that is refused is not part of the sentence', () => {
  const key = 'almost-a-key';
  try {
    sealed(memoryBroker(), { keys: [{ id: 'a', key }] });
    expect.fail('it was accepted');
  } catch (error) {
    expect((error as Error).message).not.toContain(key);
  }
});

function keyOf(id: string): SealKey {
  return { id, key: randomBytes(32) };
}

function refusal(reason: string): unknown {
  return expect.objectContaining({ name: 'SealRefusal', reason });
}

function flipped({ value, headers }: Entry): Entry {
  const at = value.length - 30;
  const changed = value[at] === 'A' ? 'B' : 'A';
  return { value: value.slice(0, at) + changed + value.slice(at + 1), headers };
}

interface Rig {
  /** The broker below. */
  readonly plain: Broker;
  readonly broker: Broker;
  readonly meter: TestMeter;
  readonly clock: ManualClock;
  readonly lines: readonly LogLine[];
}

function rig(): Rig {
  const { logger, lines } = logLines('brokerfeed.sealed');
  const meter = new TestMeter();
  const clock = new ManualClock();
  const plain = memoryBroker({ store: memoryStore(), meter, logger });
  return { plain, broker: sealed(plain, { keys: [A], clock }), meter, clock, lines };
}

async function entriesOf(broker: Broker, topic: string = T): Promise<readonly Entry[]> {
  const page = await broker.log.page(topic, 'earliest', 100);
  if (page.verdict !== 'ok') return expect.fail(page.verdict);
  return page.commits.flatMap((commit) => commit.entries);
}
