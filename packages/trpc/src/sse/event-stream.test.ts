import { Writable } from 'node:stream';
import type { FrameEncoder } from '@brokerfeed/core';
import { expect, test } from 'vitest';
import { EventStream } from './event-stream.ts';

const encoder: FrameEncoder = { encode: (_token, value) => String(value) };

/** A response whose network takes a chunk when the test says so. */
class HandResponse extends Writable {
  readonly chunks: string[] = [];
  readonly taken: (() => void)[] = [];
  flushes = 0;

  constructor(highWaterMark = 16) {
    super({ highWaterMark });
  }

  get headersSent(): boolean {
    return this.chunks.length > 0;
  }

  override _write(chunk: Buffer, _encoding: string, taken: () => void): void {
    this.chunks.push(chunk.toString());
    this.taken.push(taken);
  }

  flush(): void {
    this.flushes += 1;
  }

  /** Everything that was written is taken, and all that is written because of it. */
  async take(): Promise<void> {
    for (let taken = this.taken.shift(); taken !== undefined; taken = this.taken.shift()) {
      taken();
      await new Promise(setImmediate);
    }
  }
}

interface Rig {
  readonly response: HandResponse;
  readonly stream: EventStream;
}

function rig(maxBufferedBytes = 100): Rig {
  const response = new HandResponse();
  return { response, stream: new EventStream(response, encoder, maxBufferedBytes) };
}

async function openRig(maxBufferedBytes?: number): Promise<Rig> {
  const made = rig(maxBufferedBytes);
  for (const chunk of ['event: connected\n', 'data: {}\n', '\n\n']) {
    made.response.write(Buffer.from(chunk));
  }
  await made.response.take();
  expect(await made.stream.opened).toBe(made.stream);
  made.response.chunks.length = 0;
  return made;
}

function push(stream: EventStream, ...frames: string[]): void {
  stream.write({ frames, assembled: undefined });
}

test.each([
  ['chunk by chunk', ['event: connected\n', 'data: {"a":1}\n', '\n\n']],
  ['in one chunk', ['event: connected\ndata: {"a":1}\n\n\n']],
  ['cut inside its lines', ['event: con', 'nected\ndat', 'a: {', '}', '\n', '\n\n']],
])('a stream opens with the first event of tRPC, %s', async (_name, chunks) => {
  const { response, stream } = rig();
  for (const chunk of chunks) response.write(Buffer.from(chunk));
  expect(await stream.opened).toBe(stream);
});

test.each([
  ['another event', ['event: ping\n']],
  ['another line end', ['event: connected\r\n']],
  ['fewer blank lines', ['event: connected\n', 'data: {}\n', '\n']],
  ['more lines', ['event: connected\n', 'data: {}\n', 'id: 1\n']],
  ['what is no text', ['\u001f\u008b']],
])('a stream that begins with %s is not written on', async (_name, chunks) => {
  const { response, stream } = rig();
  for (const chunk of chunks) response.write(Buffer.from(chunk));
  expect(await stream.opened).toBeUndefined();
  push(stream, 'pushed');
  stream.flush();
  await response.take();
  expect(response.chunks.join('')).toBe(chunks.join(''));
});

test('a stream that is closed before its first event does not open', async () => {
  const { response, stream } = rig();
  response.write('event: connected\n');
  response.destroy();
  expect(await stream.opened).toBeUndefined();
});

test('what is pushed before the first event has ended comes after it', async () => {
  const { response, stream } = rig();
  response.write('event: connected\n');
  push(stream, 'a', 'b');
  stream.flush();
  response.write('data: {}\n');
  stream.flush();
  response.write('\n\n');
  stream.flush();
  await response.take();
  expect(response.chunks.join('')).toBe('event: connected\ndata: {}\n\n\nab');
});

test('what is pushed in a round leaves in one write, and is flushed past a compressor', async () => {
  const { response, stream } = await openRig();
  push(stream, 'a', 'b');
  push(stream, 'c');
  await new Promise(setImmediate);
  await response.take();
  expect(response.chunks).toEqual(['abc']);
  expect(response.flushes).toBe(1);
});

test('what was pushed is not overtaken by what tRPC writes after it', async () => {
  const { response, stream } = await openRig();
  push(stream, 'a');
  response.write('event: return\n');
  await response.take();
  expect(response.chunks).toEqual(['a', 'event: return\n']);
});

test.each([
  ['as tRPC writes it', ['event: ping\n', 'data: \n', '\n\n'], 'event: ping\ndata: \n\n\n012'],
  ['cut elsewhere', ['event: p', 'ing\ndata: \n\n', '\n'], 'event: ping\ndata: \n\n01\n2'],
])('what is pushed inside an event waits for its end, %s', async (_name, chunks, text) => {
  const { response, stream } = await openRig();
  for (const [at, chunk] of chunks.entries()) {
    response.write(chunk);
    push(stream, String(at));
    stream.flush();
    await new Promise(setImmediate);
  }
  await response.take();
  expect(response.chunks.join('')).toBe(text);
});

test('it is full beyond what it may hold, until the response has drained', async () => {
  const { response, stream } = await openRig(20);
  push(stream, 'x'.repeat(20));
  expect(stream.isFull()).toBe(false);
  push(stream, 'y');
  expect(stream.isFull()).toBe(true);
  let writable = 0;
  stream.whenWritable(() => {
    writable += 1;
  });
  await new Promise(setImmediate);
  expect([stream.isFull(), writable]).toEqual([true, 0]);
  await response.take();
  expect([stream.isFull(), writable]).toEqual([false, 1]);
  expect(response.chunks.join('')).toBe(`${'x'.repeat(20)}y`);
});

test('a response that takes all at once is never full', async () => {
  const response = new HandResponse(1000);
  const stream = new EventStream(response, encoder, 20);
  response.write('event: connected\ndata: {}\n\n\n');
  for (let n = 0; n < 10; n += 1) {
    push(stream, 'x'.repeat(20));
    stream.flush();
    expect(stream.isFull()).toBe(false);
  }
});

test('whoever waits for room behind an event of tRPC is told when that has ended', async () => {
  const response = new HandResponse(1000);
  const stream = new EventStream(response, encoder, 5);
  response.write('event: connected\ndata: {}\n\n\n');
  response.write('event: ping\n');
  push(stream, 'x'.repeat(6));
  let told = false;
  stream.whenWritable(() => {
    told = true;
  });
  await new Promise(setImmediate);
  expect(told).toBe(false);
  response.write('data: \n\n\n');
  expect(told).toBe(true);
});

test('a response that closes wakes whoever waits, and drops what was pushed', async () => {
  const { response, stream } = await openRig(5);
  push(stream, 'x'.repeat(30));
  stream.flush();
  push(stream, 'y');
  const told = new Promise<void>((resolve) => stream.whenWritable(resolve));
  response.destroy();
  await told;
  push(stream, 'z');
  stream.flush();
  expect(response.chunks.join('')).toBe('x'.repeat(30));
});

test('a response ends after what was pushed, and nothing is written after that', async () => {
  const { response, stream } = await openRig();
  push(stream, 'x');
  response.end();
  push(stream, 'y');
  stream.flush();
  await response.take();
  expect(response.chunks).toEqual(['x']);
});

test('the events of a run are joined once for all that get it', async () => {
  const assembled = new Map<string, Uint8Array>();
  const run = { frames: ['a', 'b'], assembled };
  const rigs = [await openRig(), await openRig()];
  for (const { stream } of rigs) stream.write(run);
  await new Promise(setImmediate);
  expect([...assembled.values()].map(String)).toEqual(['ab']);
  for (const { response } of rigs) expect(response.chunks).toEqual(['ab']);
});
