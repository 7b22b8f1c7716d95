import { EventEmitter } from 'node:events';
import { Duplex } from 'node:stream';
import type { EncodedRun } from '@brokerfeed/core';
import { type TrackedEnvelope, tracked } from '@trpc/server';
import { expect, test } from 'vitest';
import type { WebSocket } from 'ws';
import { FeedConnection, type FeedConnectionOptions } from './feed-connection.ts';
import { FrameTrial } from './frame-trial.ts';
import { textFrames } from './text-frame.ts';

const OPEN = 1;
const PREFIX = '{"id":1,';
const OPTIONS = { maxBufferedBytes: 1000, drainTimeoutMs: undefined };

/** A socket that takes something only when the test says so. */
class SlowSocket extends Duplex {
  readonly chunks: Buffer[] = [];
  bytesWritten = 0;
  #done: (() => void)[] = [];

  constructor() {
    super({ writableHighWaterMark: 4096 });
  }

  override write(...args: unknown[]): boolean {
    this.bytesWritten += (args[0] as Buffer).length;
    return Reflect.apply(super.write, this, args);
  }

  override _read(): void {}

  override _write(chunk: Buffer, _encoding: string, done: () => void): void {
    this.chunks.push(chunk);
    this.#done.push(done);
  }

  /** Takes all that it holds. */
  async drain(): Promise<void> {
    while (this.#done.length > 0) {
      for (const done of this.#done.splice(0)) done();
      await settled();
    }
  }

  get text(): string {
    return Buffer.concat(this.chunks).toString('latin1');
  }
}

/** What a `ws` connection does with a socket, without compression. */
class PlainWs extends EventEmitter {
  readyState = OPEN;
  extensions = '';
  terminated = 0;
  readonly sent: string[] = [];
  /** Bytes that it has not passed on to the socket. */
  held = 0;
  readonly #socket: SlowSocket;

  constructor(socket: SlowSocket) {
    super();
    this.#socket = socket;
  }

  get bufferedAmount(): number {
    return this.#socket.writableLength + this.held;
  }

  send(data: string | Buffer, _options?: unknown, sent?: () => void): void {
    this.sent.push(String(data));
    this.#socket.write(textFrames(String(data), ['']), sent);
  }

  close(): void {
    this.readyState = 2;
  }

  terminate(): void {
    this.terminated += 1;
  }
}

function settled(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

function run(...payloads: string[]): EncodedRun {
  return { frames: payloads, assembled: undefined };
}

function connect(options: Partial<FeedConnectionOptions> = {}) {
  const socket = new SlowSocket();
  const ws = new PlainWs(socket);
  const carrier = ws as unknown as WebSocket;
  const connection = new FeedConnection(carrier, socket, { ...OPTIONS, ...options }, () => {});
  /** Has a frame go through `ws` that the connection waits for, as the trial of a feed does. */
  const prove = (text: string): void => {
    const envelope: TrackedEnvelope<unknown> = tracked('id', 1);
    const trial = new FrameTrial(connection, envelope, text);
    expect(envelope[1]).toBe(1);
    ws.send(text);
    expect(trial.passed()).toBe(true);
  };
  return { socket, ws, connection, prove };
}

test('before it has seen what the socket carries, it writes through ws', () => {
  const { ws, connection } = connect();
  connection.write(PREFIX, run('"a":1}'));
  expect(ws.sent).toEqual(['{"id":1,"a":1}']);
});

test('afterwards the frames of a round leave in one write, and before whatever is sent', async () => {
  const { socket, ws, connection, prove } = connect();
  prove('{}');
  await socket.drain();
  connection.write(PREFIX, run('"a":1}', '"a":2}'));
  connection.write('{"id":2,', run('"a":3}'));
  expect(socket.chunks).toHaveLength(1);
  ws.send('PING');
  await socket.drain();
  expect(socket.chunks).toHaveLength(3);
  const frames = '\x81\x0e{"id":1,"a":1}\x81\x0e{"id":1,"a":2}\x81\x0e{"id":2,"a":3}';
  expect(socket.text).toBe(`\x81\x02{}${frames}\x81\x04PING`);
});

test('a socket that carries something else than ws was given is never written to', async () => {
  const { socket, ws, connection, prove } = connect();
  const { write } = socket;
  // Such as a stream in between that encrypts.
  socket.write = (...args: unknown[]) => {
    socket.bytesWritten += 1;
    return Reflect.apply(write, socket, args);
  };
  prove('{}');
  await socket.drain();
  connection.write(PREFIX, run('"a":1}'));
  expect(ws.sent).toEqual(['{}', '{"id":1,"a":1}']);
});

test('while ws holds something back, what is pushed goes through it too', async () => {
  const { socket, ws, connection, prove } = connect();
  prove('{}');
  await socket.drain();
  // Such as a blob, which it reads before it sends it.
  ws.held = 500;
  ws.send('a reply');
  connection.write(PREFIX, run('"a":1}'));
  expect(ws.sent).toEqual(['{}', 'a reply', '{"id":1,"a":1}']);
  ws.held = 0;
  connection.write(PREFIX, run('"a":2}'));
  expect(ws.sent).toHaveLength(3);
  await settled();
  await socket.drain();
  expect(socket.text).toMatch(/"a":1\}.*"a":2\}$/s);
});

test('it wakes whoever waits although its bound is below the mark at which a socket tells', async () => {
  const { socket, connection, prove } = connect({ maxBufferedBytes: 1 });
  prove('{}');
  await socket.drain();
  let written = 0;
  let woken = 0;
  // As a pump does: write while there is room, then wait.
  const go = (): void => {
    while (!connection.isFull() && written < 200) {
      connection.write(PREFIX, run(`"a":"${'x'.repeat(100)}"}`));
      written += 1;
    }
    if (written < 200)
      connection.whenWritable(() => {
        woken += 1;
        go();
      });
  };
  go();
  for (let round = 0; round < 50 && written < 200; round += 1) {
    await settled();
    await socket.drain();
  }
  expect(written).toBe(200);
  expect(woken).toBeGreaterThan(1);
});

test('while ws may hold something back, whoever waits is woken by every frame that has left', async () => {
  const { socket, ws, connection } = connect({ maxBufferedBytes: 10 });
  ws.send('a reply of more than ten bytes');
  expect(connection.isFull()).toBe(true);
  let woken = 0;
  connection.whenWritable(() => {
    woken += 1;
  });
  await settled();
  expect(woken).toBe(0);
  await socket.drain();
  expect(woken).toBe(1);
});

test('a connection that is not open is full, and drops what is written', async () => {
  const { socket, ws, connection, prove } = connect();
  prove('{}');
  await socket.drain();
  connection.write(PREFIX, run('"a":1}'));
  ws.readyState = 2;
  connection.write(PREFIX, run('"a":2}'));
  await settled();
  expect(connection.isFull()).toBe(true);
  expect(socket.text).toBe('\x81\x02{}');
});

test('a socket that does not drain in time is cut, and one that drains is not', async () => {
  const { socket, ws, connection } = connect({ maxBufferedBytes: 10, drainTimeoutMs: 1 });
  const waits = async (): Promise<void> => {
    ws.send('a reply of more than ten bytes');
    connection.whenWritable(() => {});
  };
  await waits();
  await socket.drain();
  await expect.poll(() => connection.isFull()).toBe(false);
  expect(ws.terminated).toBe(0);
  await waits();
  await expect.poll(() => ws.terminated).toBe(1);
});

test('frames that many subscribers get are written once for each request id', () => {
  const { connection, prove } = connect();
  prove('{}');
  const shared: EncodedRun = { frames: ['"a":1}'], assembled: new Map() };
  for (let id = 0; id < 100; id += 1) {
    for (let again = 0; again < 2; again += 1) connection.write(`{"id":${id},`, shared);
  }
  // Not for ever more ids.
  expect(shared.assembled?.size).toBe(16);
});

test('frames of a request id that a client has made long are not kept', () => {
  const { connection, prove } = connect();
  prove('{}');
  const shared: EncodedRun = { frames: ['"a":1}'], assembled: new Map() };
  connection.write(`{"id":"${'x'.repeat(1_000)}",`, shared);
  expect(shared.assembled?.size).toBe(0);
});
