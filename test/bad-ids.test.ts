import { memoryStore } from '@brokerfeed/core/memory';
import { packToken, parseToken, printToken, type TokenFields } from '@brokerfeed/core/wire';
import { brokerFeed } from '@brokerfeed/trpc';
import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import { connect, TRANSPORTS } from './support/client.ts';
import { collect } from './support/collector.ts';
import { observedBroker } from './support/observed.ts';
import { OTHER_SECRET, SIGNED, t } from './support/router.ts';
import { startServer } from './support/server.ts';
import { mintToken } from './support/tokens.ts';

/** What a peer may send, and what it gets: a reason, or `fresh` where it asks for a fresh subscription. */
type Sent = readonly [name: string, id: unknown, answer: string];

/** A token with one bit of one of its bytes turned over. */
function flip(token: string, byte: number): string {
  const bytes = Buffer.from(token, 'base64url');
  bytes[byte] = (bytes[byte] as number) ^ 1;
  return bytes.toString('base64url');
}

function edit(token: string, change: Partial<TokenFields>): string {
  const parsed = parseToken(token);
  if (parsed === undefined) throw new Error('the token to edit is no token');
  return printToken(packToken({ ...parsed.fields, ...change }, undefined), undefined);
}

/** The table of the signed feed of topic `orders`. */
async function signedTable(): Promise<{
  broker: ReturnType<typeof observedBroker>;
  table: Sent[];
}> {
  const store = memoryStore();
  const broker = observedBroker({ store });
  const early = await mintToken(broker, 'orders');
  await broker.log.append('orders', ['1', '2']);
  await broker.log.append('orders', '3');
  store.trim('orders', 1);
  const good = await mintToken(broker, 'orders');
  const unsigned = await mintToken(broker, 'orders', { lingerMs: 0 });
  const bytes = Buffer.from(good, 'base64url').length;
  const elsewhere = await mintToken(observedBroker(), 'orders');
  const table: Sent[] = [
    ['empty', '', 'fresh'],
    ['null', null, 'fresh'],
    ['absent', undefined, 'fresh'],
    ['zero', 0, 'malformed'],
    ['a number', 42, 'malformed'],
    ['a float', 1e300, 'malformed'],
    ['true', true, 'malformed'],
    ['false', false, 'malformed'],
    ['an array', ['x'], 'malformed'],
    ['an array of a good token', [good], 'malformed'],
    ['an object', { id: good }, 'malformed'],
    ['"0"', '0', 'malformed'],
    ['"$"', '$', 'malformed'],
    ['a Redis id', '1700000000000-0', 'malformed'],
    ['garbage', 'garbage!', 'malformed'],
    ['JSON', '{"epoch":"x"}', 'malformed'],
    ['a path', '../../etc/passwd', 'malformed'],
    ['a space', ' ', 'malformed'],
    ['a zero byte', '\0', 'malformed'],
    ['a line break', `${good}\n`, 'malformed'],
    ['a carriage return', `\r${good}`, 'malformed'],
    ['control characters', '\u0001\u0007\u001b[31m', 'malformed'],
    ['letters beyond ASCII', 'ünïcödé😀', 'malformed'],
    ['padding', `${good}=`, 'malformed'],
    ['surrounded by spaces', ` ${good} `, 'malformed'],
    ['twice', good + good, 'malformed'],
    ['512 characters', 'A'.repeat(512), 'malformed'],
    ['513 characters', 'A'.repeat(513), 'too-long'],
    ['10 kB', 'A'.repeat(10_000), 'too-long'],
    ['a future version', flip(good, 0).replace(/^./, 'I'), 'malformed'],
    ['one character less', good.slice(0, -1), 'malformed'],
    [
      'a byte less',
      Buffer.from(good, 'base64url').subarray(0, -1).toString('base64url'),
      'malformed',
    ],
    ['the first half', good.slice(0, good.length / 2), 'malformed'],
    ['another key id', flip(good, 1), 'signature'],
    ['another epoch', flip(good, 2), 'signature'],
    ['another ordinal', flip(good, 12), 'signature'],
    ['another mac', flip(good, bytes - 1), 'signature'],
    ['unsigned', unsigned, 'signature'],
    ['edited and unsigned', edit(good, { ordinal: 1 }), 'signature'],
    ["another topic's", await mintToken(broker, 'invoices'), 'signature'],
    [
      "another secret's",
      await mintToken(broker, 'orders', { ...SIGNED, secret: OTHER_SECRET }),
      'signature',
    ],
    [
      "another audience's",
      await mintToken(broker, 'orders', { ...SIGNED, bind: () => 'ann' }),
      'signature',
    ],
    ["another log's", elsewhere, 'epoch'],
    ['trimmed', early, 'trimmed'],
  ];
  return { broker, table };
}

/** The table of the unsigned feed, where a peer can choose any position. */
async function unsignedTable(): Promise<{
  broker: ReturnType<typeof observedBroker>;
  table: Sent[];
}> {
  const broker = observedBroker();
  const good = await mintToken(broker, 'orders', { lingerMs: 0 });
  const table: Sent[] = [
    ['past the end', edit(good, { ordinal: 99, id: '99' }), 'ahead'],
    ['far past the end', edit(good, { ordinal: Number.MAX_SAFE_INTEGER }), 'ahead'],
    ['another id at its place', edit(good, { id: '7' }), 'forked'],
    ['inside a snapshot', edit(good, { kind: 'snapshot' }), 'snapshot'],
    ['another epoch', edit(good, { epoch: 'AAAAAAAAAAAA' }), 'epoch'],
    ['signed', await mintToken(broker, 'orders'), 'signature'],
  ];
  return { broker, table };
}

describe.each(TRANSPORTS)('over %s', (transport) => {
  test.each([
    ['signed', signedTable, SIGNED],
    ['unsigned', unsignedTable, { lingerMs: 0 }],
  ] as const)(
    'every bad id of a peer is answered as ruled, and the connection lives on: a feed that is %s',
    async (_, make, options) => {
      const { broker, table } = await make();
      const router = t.router({
        feed: t.procedure
          .input(z.object({ lastEventId: z.unknown().optional() }))
          .subscription(brokerFeed(broker, 'orders', { ...options, control: true })),
      });
      await using server = await startServer(router);
      await using client = connect<typeof router>(server, transport);
      using bystander = collect((on) => client.trpc.feed.subscribe({ lastEventId: null }, on));
      const answers: Sent[] = [];
      for (const [name, lastEventId] of table) {
        using feed = collect((on) => client.trpc.feed.subscribe({ lastEventId }, on));
        // A subscription that stands says so in its first frame.
        await feed.until(({ frames, errors }) => frames.length + errors.length > 0);
        const [error] = feed.errors;
        answers.push([name, lastEventId, error ? String(error.data?.feed?.reason) : 'fresh']);
      }
      expect(answers).toEqual(table);
      await broker.log.append('orders', '"after"');
      await bystander.until(({ values }) => values.includes('after'));
      expect(bystander.errors).toEqual([]);
      if (transport === 'ws') expect(server.connections).toBe(1);
    },
  );
});
