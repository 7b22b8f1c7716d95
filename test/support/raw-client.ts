import { once } from 'node:events';
import type { Duplex } from 'node:stream';
import { type ClientOptions, WebSocket } from 'ws';
import { Moments } from './moments.ts';

/** One message of tRPC's WebSocket protocol, as a server sends it. */
export interface Message {
  readonly id: number | string | null;
  readonly result?: {
    readonly type: 'started' | 'stopped' | 'data';
    readonly id?: string;
    readonly data?: unknown;
  };
  readonly error?: { readonly message: string; readonly data?: unknown };
}

export interface SubscribeOptions {
  readonly input?: unknown;
  readonly lastEventId?: string;
  readonly jsonrpc?: '2.0';
}

/** A WebSocket client that speaks tRPC's protocol by hand, and keeps all that came. */
export class RawClient implements AsyncDisposable {
  readonly ws: WebSocket;
  /** All messages, as they came. */
  readonly texts: string[] = [];
  /** All bytes after the handshake, if they were asked for. */
  readonly bytes: Buffer[] = [];
  readonly #moments = new Moments();
  readonly #parsed: Message[] = [];
  readonly #byId = new Map<number | string, Message[]>();
  readonly #values = new Map<number | string, unknown[]>();
  #read = 0;

  private constructor(ws: WebSocket, keepBytes: boolean) {
    this.ws = ws;
    ws.on('upgrade', ({ socket }: { socket: Duplex }) => {
      if (keepBytes) socket.on('data', (chunk: Buffer) => this.bytes.push(chunk));
    });
    ws.on('message', (data) => {
      this.texts.push(data.toString());
      this.#moments.tell();
    });
    ws.on('close', () => this.#moments.tell());
    ws.on('error', () => {});
  }

  static async open(
    url: string,
    { keepBytes = false, ...options }: ClientOptions & { keepBytes?: boolean } = {},
  ): Promise<RawClient> {
    const ws = new WebSocket(url, { perMessageDeflate: false, ...options });
    const client = new RawClient(ws, keepBytes);
    await once(ws, 'open');
    return client;
  }

  send(message: object): void {
    this.ws.send(JSON.stringify(message));
  }

  subscribe(id: number | string, path: string, options: SubscribeOptions = {}): void {
    const { jsonrpc, ...params } = options;
    this.send({ id, jsonrpc, method: 'subscription', params: { path, ...params } });
  }

  stop(id: number | string): void {
    this.send({ id, method: 'subscription.stop' });
  }

  /** All messages but pings. */
  get messages(): readonly Message[] {
    this.#parse();
    return this.#parsed;
  }

  of(id: number | string): readonly Message[] {
    this.#parse();
    return this.#byId.get(id) ?? [];
  }

  /** The data of the tracked frames of a subscription. */
  values(id: number | string): readonly unknown[] {
    this.#parse();
    return this.#values.get(id) ?? [];
  }

  /** The newest token of a subscription. */
  token(id: number | string): string | undefined {
    return this.of(id).findLast(({ result }) => result?.type === 'data')?.result?.id;
  }

  #parse(): void {
    while (this.#read < this.texts.length) {
      const text = this.texts[this.#read] as string;
      this.#read += 1;
      if (text === 'PING' || text === 'PONG') continue;
      const message = JSON.parse(text) as Message;
      this.#parsed.push(message);
      if (message.id === null) continue;
      put(this.#byId, message.id, message);
      if (message.result?.id !== undefined) {
        put(this.#values, message.id, (message.result.data as { data: unknown }).data);
      }
    }
  }

  until(condition: () => boolean): Promise<void> {
    return this.#moments.until(condition, () => {
      const last = this.texts.slice(-3).map((text) => text.slice(0, 300));
      return `not seen; ${this.texts.length} messages came, at last ${last.join(' ')}`;
    });
  }

  /** Waits until so many messages came in all. Cheaper than {@link until} on their contents. */
  async count(count: number): Promise<void> {
    await this.until(() => this.texts.length >= count);
  }

  async started(id: number | string): Promise<void> {
    await this.until(() => this.of(id).some(({ result }) => result?.type === 'started'));
  }

  async stopped(id: number | string): Promise<void> {
    await this.until(() => this.of(id).at(-1)?.result?.type === 'stopped');
  }

  /** Waits for so many values of a subscription and answers all that came. */
  async take(id: number | string, count: number): Promise<readonly unknown[]> {
    await this.until(() => this.values(id).length >= count);
    return this.values(id);
  }

  async closed(): Promise<void> {
    await this.until(() => this.ws.readyState === WebSocket.CLOSED);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.ws.terminate();
    await this.closed();
  }
}

function put<Key, Value>(lists: Map<Key, Value[]>, key: Key, value: Value): void {
  const list = lists.get(key);
  if (list === undefined) lists.set(key, [value]);
  else list.push(value);
}
