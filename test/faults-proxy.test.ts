import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import { expect, test } from 'vitest';
import { startFaultProxy } from './support/fault-proxy.ts';
import { Moments } from './support/moments.ts';

/** A server that answers each request with the request and a full stop. */
async function startEcho(): Promise<{ readonly port: number } & AsyncDisposable> {
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.on('error', () => {});
    socket.on('data', (chunk) => socket.write(`${chunk}.`));
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    port: (server.address() as AddressInfo).port,
    async [Symbol.asyncDispose]() {
      for (const socket of sockets) socket.destroy();
      server.close();
      await once(server, 'close');
    },
  };
}

/** A client that keeps what it got. */
class Client implements Disposable {
  readonly #socket: Socket;
  readonly #moments = new Moments();
  #got = '';
  #state: 'open' | 'over' = 'open';

  constructor(port: number) {
    this.#socket = connect(port, '127.0.0.1');
    this.#socket.setNoDelay(true);
    this.#socket.on('data', (chunk) => {
      this.#got += String(chunk);
      this.#moments.tell();
    });
    // Whether it sees the reset as an error depends on what was still to be read.
    this.#socket.on('error', () => {});
    this.#socket.on('close', () => {
      this.#state = 'over';
      this.#moments.tell();
    });
  }

  get got(): string {
    return this.#got;
  }

  send(text: string): void {
    this.#socket.write(text);
  }

  until(condition: () => boolean): Promise<void> {
    return this.#moments.until(condition, () => `${this.#state}, got ${this.#got}`);
  }

  async reply(text: string): Promise<void> {
    await this.until(() => this.#got === text);
  }

  async wasCut(): Promise<void> {
    await this.until(() => this.#state === 'over');
  }

  [Symbol.dispose](): void {
    this.#socket.destroy();
  }
}

test('it passes on what is sent, and connections that are cut end', async () => {
  await using echo = await startEcho();
  await using proxy = await startFaultProxy(echo.port);
  using client = new Client(proxy.port);
  client.send('a');
  await client.reply('a.');
  proxy.cut();
  await client.wasCut();
  using next = new Client(proxy.port);
  next.send('b');
  await next.reply('b.');
  expect(proxy.accepted).toBe(2);
});

test('refusing, it ends connections until mended', async () => {
  await using echo = await startEcho();
  await using proxy = await startFaultProxy(echo.port);
  proxy.refuse();
  using refused = new Client(proxy.port);
  await refused.wasCut();
  proxy.mend();
  using client = new Client(proxy.port);
  client.send('a');
  await client.reply('a.');
});

test('of a black hole everything comes out when it is mended, also from connections made meanwhile', async () => {
  await using echo = await startEcho();
  await using proxy = await startFaultProxy(echo.port);
  await using other = await startFaultProxy(echo.port);
  using before = new Client(proxy.port);
  before.send('a');
  await before.reply('a.');
  proxy.blackHole();
  using during = new Client(proxy.port);
  before.send('b');
  during.send('c');
  // By the time of this answer those would have come.
  using witness = new Client(other.port);
  witness.send('w');
  await witness.reply('w.');
  expect([before.got, during.got]).toEqual(['a.', '']);
  proxy.mend();
  await before.reply('a.b.');
  await during.reply('c.');
});

test('a half-open connection stays open and carries nothing; the next one is whole', async () => {
  await using echo = await startEcho();
  await using proxy = await startFaultProxy(echo.port);
  using lost = new Client(proxy.port);
  lost.send('a');
  await lost.reply('a.');
  proxy.halfOpen();
  lost.send('b');
  using next = new Client(proxy.port);
  next.send('c');
  await next.reply('c.');
  expect(lost.got).toBe('a.');
  expect(proxy.open).toBe(2);
});

test('what is delayed keeps its order, also when the delay ends before it arrives', async () => {
  await using echo = await startEcho();
  await using proxy = await startFaultProxy(echo.port);
  using client = new Client(proxy.port);
  client.send('a');
  await client.reply('a.');
  proxy.delay(50);
  client.send('b');
  // By the time of this answer the proxy has that, and what comes next is not held up any more.
  await using other = await startFaultProxy(echo.port);
  using witness = new Client(other.port);
  witness.send('w');
  await witness.reply('w.');
  proxy.mend();
  client.send('c');
  await client.until(() => client.got.includes('c'));
  expect(client.got.replaceAll('.', '')).toBe('abc');
});

test('a reset in mid-reply leaves half of it', async () => {
  await using echo = await startEcho();
  await using proxy = await startFaultProxy(echo.port);
  using client = new Client(proxy.port);
  client.send('a');
  await client.reply('a.');
  proxy.resetInReply();
  client.send('bcdefg');
  await client.until(() => client.got !== 'a.');
  await client.wasCut();
  expect(client.got).toBe('a.bcde');
});

test('the reply to one request is lost, and with it its connection alone', async () => {
  await using echo = await startEcho();
  await using proxy = await startFaultProxy(echo.port);
  using other = new Client(proxy.port);
  using client = new Client(proxy.port);
  other.send('a');
  await other.reply('a.');
  const lost = proxy.loseReply((request) => request.includes('append'));
  client.send('read');
  await client.reply('read.');
  client.send('append');
  await lost;
  await client.wasCut();
  expect(client.got).toBe('read.');
  other.send('b');
  await other.reply('a.b.');
});
