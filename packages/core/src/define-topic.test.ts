import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import { TestMeter } from '../../../test/support/observed.ts';
import type { Broker, Entry } from './broker.ts';
import {
  type AppendOptions,
  defineTopic,
  type Position,
  type StandardSchema,
  sealed,
  type TopicDefinition,
  watch,
} from './index.ts';
import { memoryBroker } from './memory/index.ts';

const Order = z.object({
  id: z.string(),
  items: z.array(z.object({ price: z.number() })).default([]),
});
const ACME = { tenant: 'acme' };
const orders = defineTopic({
  name: ({ tenant }: { tenant: string }) => `orders.${tenant}`,
  schema: Order,
});

describe('an append', () => {
  test('writes the JSON of the value to the topic that its params name', async () => {
    await using broker = memoryBroker();
    const position = await orders.append(broker, ACME, { id: 'a' }, { headers: { name: 'x' } });
    expect(position.ordinal).toBe(1);
    const [entry] = await entriesOf(broker, 'orders.acme');
    expect(entry).toMatchObject({ value: '{"id":"a"}', headers: { name: 'x' } });
    expect(await orders.parse(entry?.value as string)).toEqual({ id: 'a', items: [] });
  });

  test('of a value that the schema refuses says where, and writes nothing', async () => {
    const meter = new TestMeter();
    await using broker = memoryBroker({ meter });
    const bad = { id: 'a', items: [{ price: 1 }, { price: 'much' as never }] };
    await expect(orders.append(broker, ACME, bad)).rejects.toMatchObject({
      name: 'BrokerError',
      code: 'VALUE_INVALID',
      message: expect.stringMatching(/"orders\.acme" is refused at items\.1\.price: .*number/),
      cause: [expect.objectContaining({ path: ['items', 1, 'price'] })],
    });
    await expect(orders.appendAll(broker, ACME, [{ id: 'b' }, bad])).rejects.toMatchObject({
      message: expect.stringContaining('value 1 of 2'),
    });
    expect(await entriesOf(broker, 'orders.acme')).toEqual([]);
    expect(meter.of('brokerfeed.topic.appends VALUE_INVALID')).toBe(2);
  });

  test('of a value that no reader would get back is refused, though the schema would take it as it is', async () => {
    await using broker = memoryBroker();
    const dated = defineTopic({ name: () => 'dated', schema: z.object({ at: z.date() }) });
    await expect(dated.append(broker, {}, { at: new Date() })).rejects.toMatchObject({
      code: 'VALUE_INVALID',
      message: expect.stringContaining('at at: '),
    });
    const coerced = defineTopic({
      name: () => 'coerced',
      schema: z.object({ at: z.coerce.date() }),
    });
    const at = new Date(1e12);
    await coerced.append(broker, {}, { at });
    const [entry] = await entriesOf(broker, 'coerced');
    expect(await coerced.parse(entry?.value as string)).toEqual({ at });

    const anything = defineTopic({ name: () => 'anything', schema: z.unknown() });
    const circle: { self?: unknown } = {};
    circle.self = circle;
    for (const value of [undefined, () => 1, 1n, circle]) {
      await expect(anything.append(broker, {}, value)).rejects.toMatchObject({
        code: 'VALUE_INVALID',
      });
    }
  });

  test('of several values is one commit', async () => {
    await using broker = memoryBroker();
    await orders.appendAll(broker, ACME, [{ id: 'a' }, { id: 'b' }]);
    const { last } = await broker.log.bounds('orders.acme');
    expect(last.ordinal).toBe(1);
    await expect(orders.appendAll(broker, ACME, [])).rejects.toMatchObject({
      code: 'VALUE_INVALID',
    });
  });

  test('waits for an asynchronous schema, and keeps the order of the calls with any other', async () => {
    await using broker = memoryBroker();
    const slow = defineTopic({
      name: () => 'slow',
      schema: z.string().refine(async (s) => s !== ''),
    });
    await slow.append(broker, {}, 'a');
    for (const values of [[''], ['', ''], ['', undefined as never], ['a', '']]) {
      await expect(slow.appendAll(broker, {}, values)).rejects.toMatchObject({
        code: 'VALUE_INVALID',
      });
    }
    // Between appends that are the broker's own, which wait for nothing either.
    const appends = Array.from({ length: 20 }, (_, index) => {
      const id = `id-${index}`;
      return index % 2 === 0
        ? orders.append(broker, ACME, { id })
        : broker.log.append('orders.acme', JSON.stringify({ id }));
    });
    await Promise.all(appends);
    const entries = await entriesOf(broker, 'orders.acme');
    expect(entries.map((entry) => JSON.parse(entry.value).id)).toEqual(
      appends.map((_, index) => `id-${index}`),
    );
  });

  test('to a name that is none is refused', async () => {
    await using broker = memoryBroker();
    const nameless = defineTopic({ name: () => '', schema: Order });
    await expect(nameless.append(broker, {}, { id: 'a' })).rejects.toMatchObject({
      code: 'TOPIC_INVALID',
    });
    for (const use of [() => nameless.name({}), () => nameless.announce(broker, {}, { id: 'a' })]) {
      expect(use).toThrow(expect.objectContaining({ code: 'TOPIC_INVALID' }));
    }
  });

  test('that the broker refuses is counted, and rejects as it did', async () => {
    const meter = new TestMeter();
    const broker = memoryBroker({ meter });
    await orders.append(broker, ACME, { id: 'a' });
    await broker.close();
    await expect(orders.append(broker, ACME, { id: 'a' })).rejects.toMatchObject({
      code: 'CLOSED',
    });
    expect(meter.of('brokerfeed.topic.appends appended')).toBe(1);
    expect(meter.of('brokerfeed.topic.appends CLOSED')).toBe(1);
  });
});

describe('the idempotency key of a definition', () => {
  const once = defineTopic({
    name: ({ tenant }: { tenant: string }) => `once.${tenant}`,
    schema: Order,
    idempotencyKey: (order, { tenant }) => (order.id === '' ? undefined : `${tenant} ${order.id}`),
  });

  test('makes a repeated append harmless', async () => {
    await using broker = memoryBroker();
    const append = (id: string): Promise<Position> => once.append(broker, ACME, { id });
    expect(await append('a')).toEqual(await append('a'));
    await once.append(broker, ACME, { id: '' });
    await once.append(broker, ACME, { id: '' });
    await expect(once.append(broker, ACME, { id: 'a', items: [{ price: 1 }] })).rejects.toEqual(
      expect.objectContaining({ code: 'IDEMPOTENCY_CONFLICT' }),
    );
    expect(await entriesOf(broker, 'once.acme')).toHaveLength(3);
  });

  test('stands for all values of a commit, where each has one', async () => {
    await using broker = memoryBroker();
    const append = (...ids: string[]): Promise<Position> =>
      once.appendAll(
        broker,
        ACME,
        ids.map((id) => ({ id })),
      );
    expect(await append('a', 'b')).toEqual(await append('a', 'b'));
    expect((await append('a b')).ordinal).toBe(2);
    expect((await append('a', '')).ordinal).toBe(3);
    expect((await append('a', '')).ordinal).toBe(4);
  });

  test('gives way to that of the call', async () => {
    await using broker = memoryBroker();
    const first = await once.append(broker, ACME, { id: 'a' });
    const options: AppendOptions = { idempotencyKey: 'of the call' };
    expect((await once.append(broker, ACME, { id: 'a' }, options)).ordinal).toBe(first.ordinal + 1);
  });
});

describe('the retention of a definition', () => {
  const board = defineTopic({
    name: ({ tenant }: { tenant: string }) => `board.${tenant}`,
    schema: z.number(),
    retention: { maxEntries: 2 },
  });
  const left = async (broker: Broker, topic = 'board.acme'): Promise<string[]> =>
    (await entriesOf(broker, topic)).map(({ value }) => value);

  test('is what each append leaves of its topic, and of no other', async () => {
    await using broker = memoryBroker();
    for (const value of [1, 2, 3]) await broker.log.append('other', String(value));
    for (const value of [1, 2, 3]) await board.append(broker, ACME, value);
    expect(await left(broker)).toEqual(['2', '3']);
    await board.appendAll(broker, ACME, [4, 5, 6]);
    expect(await left(broker)).toEqual(['4', '5', '6']);
    expect(await left(broker, 'other')).toEqual(['1', '2', '3']);
  });

  test('gives way to that of the call', async () => {
    await using broker = memoryBroker();
    for (const value of [1, 2, 3]) {
      await board.append(broker, ACME, value, { retention: { maxEntries: 10 } });
    }
    expect(await left(broker)).toEqual(['1', '2', '3']);
  });

  test('goes with its part of a commit across topics', async () => {
    await using broker = memoryBroker();
    for (const value of [1, 2, 3]) {
      await broker.log.appendAll([
        await board.part(ACME, [value]),
        await orders.part(ACME, [{ id: String(value) }]),
      ]);
    }
    expect(await left(broker)).toEqual(['2', '3']);
    expect(await left(broker, 'orders.acme')).toHaveLength(3);
  });

  test('is kept by a sealed broker too', async () => {
    await using broker = sealed(memoryBroker(), { keys: [{ id: 'k', key: new Uint8Array(32) }] });
    for (const value of [1, 2, 3]) await board.append(broker, ACME, value);
    expect(await left(broker)).toEqual(['2', '3']);
  });
});

test('parts of several topics make one commit, or none', async () => {
  await using broker = memoryBroker();
  const stock = defineTopic({
    name: ({ tenant }: { tenant: string }) => `stock.${tenant}`,
    schema: z.number(),
    headers: () => ({ name: 'x' }),
  });
  await broker.log.appendAll([
    await orders.part(ACME, [{ id: 'a' }]),
    await stock.part(ACME, [1, 2]),
  ]);
  expect(await entriesOf(broker, 'orders.acme')).toHaveLength(1);
  const written = await entriesOf(broker, 'stock.acme');
  expect(written.map(({ value, headers }) => [value, headers])).toEqual([
    ['1', { name: 'x' }],
    ['2', { name: 'x' }],
  ]);
  await expect(stock.part(ACME, [1, '2' as never])).rejects.toMatchObject({
    code: 'VALUE_INVALID',
    message: expect.stringContaining('value 1 of 2 of topic "stock.acme"'),
  });
});

test('the headers of a definition carry a trace, and give way to those of the call', async () => {
  await using broker = memoryBroker();
  const traceparent = '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01';
  const traced = defineTopic({
    name: ({ tenant }: { tenant: string }) => `traced.${tenant}`,
    schema: Order,
    headers: ({ tenant }) => ({ traceparent, tenant }),
  });
  await traced.append(broker, ACME, { id: 'a' }, { headers: { tenant: 'other', name: 'x' } });
  const [entry] = await entriesOf(broker, 'traced.acme');
  expect(entry?.headers).toEqual({ traceparent, tenant: 'other', name: 'x' });
});

describe('an announcement', () => {
  test('reaches the watches of the topic, and is neither made nor checked where there are none', async () => {
    await using broker = memoryBroker();
    orders.announce(broker, ACME, () => expect.fail('it was made'));
    orders.announce(broker, ACME, { id: 5 as never });
    await using watching = await orders.watch(broker, ACME);
    await using other = await watch(broker, 'orders.other');
    orders.announce(broker, ACME, () => ({ id: 'a' }));
    orders.announce(broker, ACME, { id: 'b' });
    const event = watching.tryNext();
    expect(event.kind === 'announcement' && (await orders.parse(event.value))).toEqual({
      id: 'a',
      items: [],
    });
    expect(watching.tryNext()).toMatchObject({ topic: 'orders.acme', value: '{"id":"b"}' });
    expect(other.tryNext()).toEqual({ kind: 'empty' });
  });

  test('that the schema refuses, or cannot check at once, is refused', async () => {
    await using broker = memoryBroker();
    await using watching = await orders.watch(broker, ACME);
    expect(() => orders.announce(broker, ACME, { id: 5 as never })).toThrow(
      expect.objectContaining({ code: 'VALUE_INVALID', message: expect.stringContaining('at id') }),
    );
    const slow = defineTopic({
      name: () => 'orders.acme',
      schema: z.string().refine(async () => false),
    });
    expect(() => slow.announce(broker, {}, 'a')).toThrow(
      expect.objectContaining({ code: 'UNSUPPORTED' }),
    );
    expect(watching.tryNext()).toEqual({ kind: 'empty' });
  });
});

test('a text that is no value of the topic does not parse', async () => {
  await expect(orders.parse('{')).rejects.toMatchObject({ code: 'VALUE_INVALID' });
  await expect(orders.parse('{"id":1}')).rejects.toMatchObject({
    code: 'VALUE_INVALID',
    message: expect.stringContaining('at id: '),
  });
});

test.each<[string, unknown]>([
  ['definition', null],
  ['name', { schema: Order }],
  ['name', { name: 'orders', schema: Order }],
  ['schema', { name: () => 'orders' }],
  ['schema', { name: () => 'orders', schema: {} }],
  ['idempotencyKey', { name: () => 'orders', schema: Order, idempotencyKey: 'id' }],
  ['headers', { name: () => 'orders', schema: Order, headers: {} }],
  ['retention', { name: () => 'orders', schema: Order, retention: 100 }],
  ['retention.maxEntries', { name: () => 'o', schema: Order, retention: { maxEntries: 0 } }],
  ['retention.maxAgeMs', { name: () => 'o', schema: Order, retention: { maxAgeMs: '1h' } }],
])('%s is refused by name in %o', (option, definition) => {
  type Definition = TopicDefinition<unknown, unknown, unknown>;
  expect(() => defineTopic(definition as Definition)).toThrow(
    expect.objectContaining({
      code: 'OPTION_INVALID',
      message: expect.stringMatching(new RegExp(`^${option} is `)),
    }),
  );
});

test('issues with path segments that are objects, or without a path, are described', async () => {
  type Issue = { message: string; path?: readonly (PropertyKey | { key: PropertyKey })[] };
  const schema = (issue: Issue): StandardSchema => ({
    '~standard': { version: 1, vendor: 'test', validate: () => ({ issues: [issue] }) },
  });
  await using broker = memoryBroker();
  const append = (issue: Issue): Promise<Position> =>
    defineTopic({ name: () => 't', schema: schema(issue) }).append(broker, {}, 1);
  await expect(append({ message: 'no', path: [{ key: 'a' }, 0] })).rejects.toThrow('at a.0: no');
  await expect(append({ message: 'no' })).rejects.toThrow('is refused: no');
});

async function entriesOf(broker: Broker, topic: string): Promise<readonly Entry[]> {
  const page = await broker.log.page(topic, 'earliest', 100);
  if (page.verdict !== 'ok') return expect.fail(page.verdict);
  return page.commits.flatMap((commit) => commit.entries);
}
