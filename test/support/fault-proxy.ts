import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';

/** A TCP proxy that does to connections what networks do. */
export interface FaultProxy extends AsyncDisposable {
  readonly port: number;
  /** Connections now. */
  readonly open: number;
  /** Connections there ever were. */
  readonly accepted: number;
  /** Leads connections to come to another port, as a name or a virtual address that moves does. */
  retarget(port: number): void;
  /** Resets every connection. */
  cut(): void;
  /** Resets every connection, and those to come, until mended. */
  refuse(): void;
  /** Passes nothing on, on any connection, also on those to come: what was on its way arrives when mended. */
  blackHole(): void;
  /** Ends what {@link refuse}, {@link blackHole} and {@link delay} began. */
  mend(): void;
  /** Forgets every connection so far without telling its ends: what they send goes nowhere, for ever. */
  halfOpen(): void;
  /** Passes everything on later, in milliseconds. */
  delay(ms: number): void;
  /** Passes half of what comes next from the target on each connection, and then resets it. */
  resetInReply(): void;
  /**
   * Resets the first connection on which a matching request was passed on, once its reply is there, and without it.
   * Resolves when that has happened.
   */
  loseReply(matches: (request: Buffer) => boolean): Promise<void>;
}

/** Listens on a free port, in front of another on this machine. */
export async function startFaultProxy(target: number): Promise<FaultProxy> {
  const links = new Set<Link>();
  const now: { target: number; state: 'open' | 'refusing' | 'hole'; delayMs: number } = {
    target,
    state: 'open',
    delayMs: 0,
  };
  let accepted = 0;
  let losing: Losing | undefined;

  const server = createServer((inward) => {
    accepted += 1;
    if (now.state === 'refusing') {
      inward.on('error', () => {});
      inward.resetAndDestroy();
      return;
    }
    const link = new Link(inward, connect(now.target, '127.0.0.1'), {
      delayMs: () => now.delayMs,
      onRequest: (chunk) => {
        if (losing === undefined || losing.link !== undefined || !losing.matches(chunk)) return;
        losing.link = link;
      },
      onReply: () => {
        if (losing?.link !== link) return true;
        losing.done();
        losing = undefined;
        link.reset();
        return false;
      },
      onClose: () => {
        links.delete(link);
        // Closed without a reply, it has lost that one too.
        if (losing?.link !== link) return;
        losing.done();
        losing = undefined;
      },
    });
    links.add(link);
    if (now.state === 'hole') link.pause();
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');

  const each = (act: (link: Link) => void): void => {
    for (const link of [...links]) act(link);
  };
  return {
    port: (server.address() as AddressInfo).port,
    get open() {
      return links.size;
    },
    get accepted() {
      return accepted;
    },
    retarget(port) {
      now.target = port;
    },
    cut: () => each((link) => link.reset()),
    refuse() {
      now.state = 'refusing';
      each((link) => link.reset());
    },
    blackHole() {
      now.state = 'hole';
      each((link) => link.pause());
    },
    mend() {
      now.state = 'open';
      now.delayMs = 0;
      each((link) => link.resume());
    },
    halfOpen: () => each((link) => link.forget()),
    delay(ms) {
      now.delayMs = ms;
    },
    resetInReply: () => each((link) => link.resetInReply()),
    loseReply: (matches) =>
      new Promise((resolve) => {
        losing = { matches, link: undefined, done: resolve };
      }),
    async [Symbol.asyncDispose]() {
      each((link) => link.reset());
      server.close();
      await once(server, 'close');
    },
  };
}

interface Losing {
  readonly matches: (request: Buffer) => boolean;
  link: Link | undefined;
  readonly done: () => void;
}

interface LinkEvents {
  delayMs(): number;
  onRequest(chunk: Buffer): void;
  /** Answers whether it may be passed on. */
  onReply(): boolean;
  onClose(): void;
}

/** One connection through the proxy: its two ends. */
class Link {
  readonly #inward: Socket;
  readonly #outward: Socket;
  readonly #events: LinkEvents;
  readonly #inwardLane: Lane;
  readonly #outwardLane: Lane;
  #reply: 'whole' | 'half' = 'whole';
  #state: 'passing' | 'forgotten' = 'passing';

  constructor(inward: Socket, outward: Socket, events: LinkEvents) {
    this.#inward = inward;
    this.#outward = outward;
    this.#events = events;
    this.#inwardLane = new Lane(events.delayMs);
    this.#outwardLane = new Lane(events.delayMs);
    inward.setNoDelay(true);
    outward.setNoDelay(true);
    inward.on('data', (chunk: Buffer) => this.#request(chunk));
    outward.on('data', (chunk: Buffer) => this.#answer(chunk));
    for (const [socket, other, lane] of [
      [inward, outward, this.#outwardLane],
      [outward, inward, this.#inwardLane],
    ] as const) {
      socket.on('error', () => {});
      socket.on('end', () => lane.pass(() => other.end()));
      socket.on('close', () => {
        if (this.#state === 'passing') lane.pass(() => other.destroy());
        events.onClose();
      });
    }
  }

  pause(): void {
    this.#inward.pause();
    this.#outward.pause();
  }

  resume(): void {
    this.#inward.resume();
    this.#outward.resume();
  }

  reset(): void {
    this.#inward.resetAndDestroy();
    this.#outward.resetAndDestroy();
  }

  forget(): void {
    this.#state = 'forgotten';
  }

  resetInReply(): void {
    this.#reply = 'half';
  }

  #request(chunk: Buffer): void {
    if (this.#state === 'forgotten') return;
    this.#events.onRequest(chunk);
    this.#outwardLane.pass(() => this.#outward.write(chunk));
  }

  #answer(chunk: Buffer): void {
    if (this.#state === 'forgotten' || !this.#events.onReply()) return;
    if (this.#reply === 'whole') {
      this.#inwardLane.pass(() => this.#inward.write(chunk));
      return;
    }
    // Written before it is reset: the half is to arrive.
    this.#inward.write(chunk.subarray(0, Math.ceil(chunk.length / 2)), () => this.reset());
  }
}

/** One direction of a connection: what passes on it arrives later, and in its order. */
class Lane {
  readonly #delayMs: () => number;
  readonly #waiting: (() => void)[] = [];

  constructor(delayMs: () => number) {
    this.#delayMs = delayMs;
  }

  pass(act: () => void): void {
    const ms = this.#delayMs();
    if (ms === 0 && this.#waiting.length === 0) {
      act();
      return;
    }
    this.#waiting.push(act);
    // Whichever timer comes first takes what came first.
    setTimeout(() => this.#waiting.shift()?.(), ms);
  }
}
