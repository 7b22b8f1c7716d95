import { once } from 'node:events';
import { createServer, get, type IncomingHttpHeaders, type IncomingMessage } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { type SseFeedsOptions, withFeeds } from '@brokerfeed/trpc/sse';
import type { AnyTRPCRouter } from '@trpc/server';
import { type CreateHTTPHandlerOptions, createHTTPHandler } from '@trpc/server/adapters/standalone';
import { Moments } from './moments.ts';

/** An HTTP server on tRPC's own handler. */
export interface StreamServer extends AsyncDisposable {
  readonly httpUrl: string;
  /** The server's ends of its connections, in the order in which they came. */
  readonly sockets: Socket[];
}

export interface StreamServerOptions {
  /** `withFeeds` or not, and with which options. @default true */
  readonly feeds?: boolean | SseFeedsOptions;
  readonly handler?: Partial<CreateHTTPHandlerOptions<AnyTRPCRouter>>;
}

/** Starts a server on a free port. */
export async function startStreamServer(
  router: AnyTRPCRouter,
  { feeds = true, handler }: StreamServerOptions = {},
): Promise<StreamServer> {
  const options = { router, ...handler };
  const served = feeds === false ? options : withFeeds(options, feeds === true ? undefined : feeds);
  const server = createServer(createHTTPHandler(served));
  const sockets: Socket[] = [];
  server.on('connection', (socket) => sockets.push(socket));
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    httpUrl: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    sockets,
    async [Symbol.asyncDispose]() {
      const closed = once(server, 'close');
      server.close();
      for (const socket of sockets) socket.destroy();
      await closed;
    },
  };
}

/** One value as a client gets it. */
export interface Frame {
  readonly id: string;
  readonly data: unknown;
}

const EVENT_END = '\n\n\n';

/** A client that reads an event stream as text, and keeps all of it. */
export class EventReader implements AsyncDisposable {
  readonly #response: IncomingMessage;
  readonly #moments = new Moments();
  #chunks: Buffer[] = [];
  #bytes = 0;
  #text: { readonly bytes: number; readonly text: string } = { bytes: 0, text: '' };
  #parsed = 0;
  readonly #events: string[][] = [];
  readonly #frames: Frame[] = [];
  #state: 'open' | 'ended' | 'cut' = 'open';

  private constructor(response: IncomingMessage) {
    this.#response = response;
    response.on('data', (chunk: Buffer) => {
      this.#chunks.push(chunk);
      this.#bytes += chunk.length;
      this.#moments.tell();
    });
    const over = (): void => {
      if (this.#state === 'open') this.#state = response.complete ? 'ended' : 'cut';
      this.#moments.tell();
    };
    response.on('close', over);
    response.on('error', over);
  }

  static async open(
    url: string,
    headers: Readonly<Record<string, string>> = {},
  ): Promise<EventReader> {
    const request = get(url, { headers: { ...headers }, agent: false });
    const [response] = (await once(request, 'response')) as [IncomingMessage];
    return new EventReader(response);
  }

  get status(): number | undefined {
    return this.#response.statusCode;
  }

  get headers(): IncomingHttpHeaders {
    return this.#response.headers;
  }

  get text(): string {
    if (this.#text.bytes < this.#bytes) {
      this.#chunks = [Buffer.concat(this.#chunks)];
      this.#text = { bytes: this.#bytes, text: String(this.#chunks[0]) };
    }
    return this.#text.text;
  }

  /** What became of the response: whether the server ended it or it was cut. */
  get state(): 'open' | 'ended' | 'cut' {
    return this.#state;
  }

  /** All events that came whole, each as its lines. */
  get events(): readonly (readonly string[])[] {
    this.#parse();
    return this.#events;
  }

  /** The events with data for the application. */
  get frames(): readonly Frame[] {
    this.#parse();
    return this.#frames;
  }

  get values(): readonly unknown[] {
    return this.frames.map(({ data }) => data);
  }

  #parse(): void {
    const { text } = this;
    for (;;) {
      const end = text.indexOf(EVENT_END, this.#parsed);
      if (end === -1) return;
      const lines = text.slice(this.#parsed, end).split('\n');
      this.#parsed = end + EVENT_END.length;
      this.#events.push(lines);
      const [data = '', id = ''] = lines;
      if (!data.startsWith('data: ')) continue;
      const given = data.slice('data: '.length);
      this.#frames.push({
        id: id.slice('id: '.length),
        data: given === 'undefined' ? undefined : JSON.parse(given),
      });
    }
  }

  pause(): void {
    this.#response.pause();
  }

  resume(): void {
    this.#response.resume();
  }

  until(condition: () => boolean): Promise<void> {
    return this.#moments.until(
      condition,
      () => `not seen; ${this.#bytes} bytes came, at last ${this.text.slice(-600)}`,
    );
  }

  /** Waits until this text came. */
  async includes(text: string): Promise<void> {
    await this.until(() => this.text.includes(text));
  }

  /** Waits for so many bytes. Cheap, where it is known how many come. */
  async bytes(count: number): Promise<void> {
    await this.until(() => this.#bytes >= count);
  }

  /** Waits for so many values and answers all that came. */
  async take(count: number): Promise<readonly unknown[]> {
    await this.until(() => this.frames.length >= count);
    return this.values;
  }

  /** Waits for the end of the response. */
  async over(): Promise<void> {
    await this.until(() => this.#state !== 'open');
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#response.destroy();
    await this.over();
  }
}
