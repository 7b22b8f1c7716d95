import { createHash, createHmac } from 'node:crypto';
import { once } from 'node:events';
import { dirname, join, normalize } from 'node:path';
import { announce, BROKER_ERROR_CODES, type Broker } from '@brokerfeed/core';
import { memoryBroker, memoryStore } from '@brokerfeed/core/memory';
import { FEED_STATUS, type FeedReason } from '@brokerfeed/core/wire';
import { brokerFeed, FeedError, watchFeed } from '@brokerfeed/trpc';
import { describe, expect, test } from 'vitest';
import { WebSocket } from 'ws';
import { TokenSigner } from '../packages/core/src/token-signer.ts';
import {
  anchorsOf,
  codeBlocks,
  documents,
  filesBelow,
  headingsOf,
  isThere,
  linksOf,
  readText,
  sectionOf,
} from './support/documents.ts';
import { SIGNED, t } from './support/router.ts';
import { startServer } from './support/server.ts';

const REASONS = Object.keys(FEED_STATUS) as FeedReason[];
const PROTOCOL = readText('PROTOCOL.md');

test('the README has 150 lines at most, CONTRIBUTING 80', () => {
  expect(readText('README.md').trimEnd().split('\n').length).toBeLessThanOrEqual(150);
  expect(readText('CONTRIBUTING.md').trimEnd().split('\n').length).toBeLessThanOrEqual(80);
});

test.each(documents())('every link of %s leads somewhere', (document) => {
  const dead = linksOf(readText(document)).filter((link) => {
    const [path = '', anchor] = link.split('#');
    const target = path === '' ? document : normalize(join(dirname(document), path));
    if (!isThere(target)) return true;
    return anchor !== undefined && !anchorsOf(readText(target)).includes(anchor);
  });
  expect(dead).toEqual([]);
});

describe('ARCHITECTURE.md', () => {
  const architecture = readText('ARCHITECTURE.md');
  const folders = filesBelow('packages')
    .filter((path) => /^packages\/[^/]+\/src\/index\.ts$/.test(path))
    .map((path) => dirname(path));

  test('has a list for each package', () => {
    const listed = headingsOf(architecture, '###').filter((name) => name.startsWith('`packages/'));
    expect(listed.sort()).toEqual(folders.map((folder) => `\`${folder}\``).sort());
  });

  test.each(folders)('has a sentence for every file of %s, and for no other', (folder) => {
    const list = sectionOf(architecture, `### \`${folder}\``);
    const named = [...list.matchAll(/^- `([^`]+\.ts)`: \S/gm)].map(([, name]) => name as string);
    const files = filesBelow(folder)
      .map((path) => path.slice(folder.length + 1))
      .filter((name) => name.endsWith('.ts') && !/\.test(-d)?\.ts$/.test(name));
    expect(named.sort()).toEqual(files.sort());
  });

  test('names no file in its reading order that is not there', () => {
    const order = sectionOf(architecture, '## Reading order');
    const named = [...order.matchAll(/`([\w/.-]+\.ts)`/g)].map(([, name]) => name as string);
    expect(named.length).toBeGreaterThan(10);
    expect(named.filter((name) => !isThere(join('packages', name)))).toEqual([]);
  });
});

describe('docs/errors.md', () => {
  const errors = readText('docs/errors.md');
  const codes = (heading: string): string[] =>
    headingsOf(sectionOf(errors, heading), '###').map((code) => code.replaceAll('`', ''));

  test('has a section for every broker error, in the order of the source', () => {
    expect(codes('## Broker errors')).toEqual([...BROKER_ERROR_CODES]);
  });

  test('has a section for every feed reason, in the order of the source', () => {
    expect(codes('## Feed reasons')).toEqual(REASONS);
  });

  test.each(REASONS)('says with which status and tRPC code %s travels', (reason) => {
    const { httpStatus, code } = new FeedError(reason, '');
    expect(sectionOf(errors, `### \`${reason}\``)).toContain(`**${httpStatus}** \`${code}\``);
    expect(sectionOf(errors, '## What stock clients do')).toContain(
      `| ${httpStatus} | \`${code}\``,
    );
  });
});

test('docs/operations.md has every measurement and log event, and no other', () => {
  const sources = filesBelow('packages').filter((path) => /\/src\/.*(?<!\.test)\.ts$/.test(path));
  const used = namesIn(sources.map(readText).join('\n'), "'");
  expect(used.length).toBeGreaterThan(30);
  const rows = readText('docs/operations.md').match(/^\| `.*$/gm) ?? [];
  expect(namesIn(rows.map((row) => row.split('|')[1]).join('\n'), '`')).toEqual(used);
});

/** The names of measurements and log events in a text, each once and sorted. */
function namesIn(text: string, quote: string): string[] {
  const name = `(?:brokerfeed|redis|journal)(?:\\.[a-z-]+)+`;
  const found = [...text.matchAll(new RegExp(`${quote}(${name})${quote}`, 'g'))];
  const names = new Set(found.map(([, matched]) => matched as string));
  // The one file whose name looks like an event's.
  names.delete('journal.json');
  return [...names].sort();
}

describe('PROTOCOL.md', () => {
  test('has every reason in its table of codes', () => {
    const rows = [
      ...sectionOf(PROTOCOL, '## Codes and reasons').matchAll(/^\| (\d{3}) \| (.*?) \| `(\w+)`/gm),
    ];
    const listed = rows.flatMap(([, status, reasons, code]) =>
      (reasons as string)
        .split(', ')
        .map((reason) => [reason.replaceAll('`', ''), Number(status), code]),
    );
    expect(listed).toEqual(
      REASONS.map((reason) => [reason, FEED_STATUS[reason], new FeedError(reason, '').code]),
    );
  });

  test('has a worked token that the real code makes, and whose parts are the bytes it says', () => {
    const example = sectionOf(PROTOCOL, '### A worked example');
    const token = codeBlocks(example, 'text')[0]?.trim() ?? '';
    const secret = /secret `([^`]+)`/.exec(example)?.[1] ?? '';
    const topic = /Topic `([^`]+)`/.exec(example)?.[1] ?? '';
    const fields = {
      kind: 'entry',
      epoch: /incarnation `([^`]+)`/.exec(example.replaceAll('\n', ' '))?.[1] ?? '',
      id: /Redis named `([^`]+)`/.exec(example)?.[1] ?? '',
      ordinal: Number(/the (\d+)th commit/.exec(example)?.[1]),
      index: 0,
    } as const;
    const signer = new TokenSigner([secret], 512);
    expect(signer.sign(fields, { topic, audience: undefined })).toBe(token);

    const parts = [...example.matchAll(/^\| ([\w ]+) \| `([0-9a-f ]+)`/gm)];
    const bytes = Object.fromEntries(
      parts.map(([, part, hex]) => [part, Buffer.from((hex as string).replaceAll(' ', ''), 'hex')]),
    );
    expect(Buffer.concat(Object.values(bytes)).toString('base64url')).toBe(token);

    // As the document says it, by other code than ours.
    const length = Buffer.alloc(4);
    length.writeUInt32BE(topic.length);
    const payload = Buffer.from(token, 'base64url').subarray(0, -12);
    const mac = createHmac('sha256', secret)
      .update(Buffer.concat([Buffer.from('brokerfeed resume token 1'), length, Buffer.from(topic)]))
      .update(Buffer.concat([Buffer.from('ffffffff', 'hex'), payload]));
    expect(mac.digest().subarray(0, 12)).toEqual(bytes.mac);
    const keyId = createHash('sha256').update(`brokerfeed key id\0${secret}`).digest()[0];
    expect([...(bytes['key id'] as Buffer)]).toEqual([keyId]);
  });

  test('shows the frames and the error that a server sends', async () => {
    const store = memoryStore();
    await using broker = memoryBroker({ store });
    // Another instance: what the first one has in memory is not its own.
    await using peer = memoryBroker({ store });
    const routerOn = (log: Broker) =>
      t.router({
        orders: t.procedure.subscription(
          brokerFeed(log, 'orders', { ...SIGNED, from: 'earliest' }),
        ),
      });
    await using other = await startServer(routerOn(peer));
    await using server = await startServer(routerOn(broker));
    const frames = sectionOf(PROTOCOL, '## Frames');

    using socket = await openSocket(server.wsUrl);
    const started = await socket.subscribe('orders');
    await broker.log.append('orders', '{"item":"flat white"}');
    const data = await socket.next();
    const token: string = JSON.parse(data).result.id;
    expect([started, data.replaceAll(token, '<token>')].join('\n')).toBe(
      codeBlocks(frames, 'json')[0]?.trim(),
    );

    const text = await readEvents(`${server.httpUrl}/orders`, (text) => /^id: .*\n\n/m.test(text));
    expect(text.replace(/^id: .*$/m, 'id: <token>')).toBe(codeBlocks(frames, 'text')[0]?.trim());

    await broker.log.append('orders', '1');
    await broker.log.append('orders', '2');
    store.trim('orders', 1);
    using refused = await openSocket(other.wsUrl);
    const { error } = JSON.parse(await refused.subscribe('orders', token));
    delete error.data.stack;
    const documented = codeBlocks(sectionOf(PROTOCOL, '## Codes and reasons'), 'json')[0];
    expect(error).toEqual(JSON.parse(documented ?? ''));
  });

  test('shows the frames of a watch that a server sends', async () => {
    await using broker = memoryBroker();
    const router = t.router({
      presence: t.procedure.subscription(watchFeed(broker, 'presence', { capacity: 1 })),
    });
    await using server = await startServer(router);
    const frames = sectionOf(PROTOCOL, '### Frames of a watch');
    const say = () => announce(broker, 'presence', '{"user":"ada","typing":true}');

    using socket = await openSocket(server.wsUrl);
    const sent = [await socket.subscribe('presence'), await socket.next()];
    say();
    sent.push(await socket.next());
    // In one turn: the reader takes one, and has room for another.
    for (let n = 0; n < 19; n += 1) say();
    await socket.next();
    sent.push(await socket.next());
    expect(sent.join('\n')).toBe(codeBlocks(frames, 'json')[0]?.trim());

    let isSaid = false;
    const text = await readEvents(`${server.httpUrl}/presence`, (text) => {
      const values = text.match(/^data: {"\w+":.*\n\n/gm)?.length ?? 0;
      if (values === 1 && !isSaid) say();
      isSaid = values > 0;
      return values === 2;
    });
    expect(text).toBe(codeBlocks(frames, 'text')[0]?.trim());
  });
});

/** Reads an event stream until the condition holds. Empty lines that follow one another count as one. */
async function readEvents(url: string, condition: (text: string) => boolean): Promise<string> {
  const left = new AbortController();
  const response = await fetch(url, { signal: left.signal });
  let text = '';
  for await (const chunk of response.body as unknown as AsyncIterable<Uint8Array>) {
    text += Buffer.from(chunk).toString();
    if (condition(text)) break;
  }
  left.abort();
  return text.replace(/\n{2,}/g, '\n\n').trim();
}

interface RawSocket extends Disposable {
  /** Subscribes, with request id 1, and answers the first message. */
  subscribe(path: string, lastEventId?: string): Promise<string>;
  /** Answers the next message. */
  next(): Promise<string>;
}

async function openSocket(url: string): Promise<RawSocket> {
  const socket = new WebSocket(url);
  const messages: string[] = [];
  socket.on('message', (data) => messages.push(String(data)));
  await once(socket, 'open');
  const next = async (): Promise<string> => {
    if (messages.length === 0) await once(socket, 'message');
    return messages.shift() as string;
  };
  return {
    next,
    subscribe(path, lastEventId) {
      socket.send(JSON.stringify({ id: 1, method: 'subscription', params: { path, lastEventId } }));
      return next();
    },
    [Symbol.dispose]: () => socket.terminate(),
  };
}
