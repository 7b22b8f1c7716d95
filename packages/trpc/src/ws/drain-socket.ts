import type { WebSocket } from 'ws';
import type { DrainMember } from '../drain.ts';

/** What tRPC's JSON encoder makes of its request to reconnect. */
const RECONNECT = '{"id":null,"method":"reconnect"}';

/** The close code of a server that is restarted: clients should come back, and need not hurry. */
const SERVICE_RESTART = 1012;

/**
 * A WebSocket whose client is told to move. tRPC's client then opens a second socket, subscribes there from its newest
 * token, and leaves the first one once its subscriptions stand and its calls are answered: nobody sees a thing. Closing
 * the socket would fail its calls and show a lost connection; an error frame would end its subscriptions for good.
 */
export class DrainSocket implements DrainMember {
  readonly #ws: WebSocket;
  #speaksJson = true;

  constructor(ws: WebSocket) {
    this.#ws = ws;
  }

  /** Notes what was sent: an `experimental_encoder` may write bytes, and then its client reads no text of ours. */
  sent(data: unknown): void {
    if (typeof data !== 'string') this.#speaksJson = false;
  }

  move(): void {
    if (this.#speaksJson) this.#ws.send(RECONNECT, ignore);
    else this.close();
  }

  close(): void {
    this.#ws.close(SERVICE_RESTART);
  }

  cut(): void {
    this.#ws.terminate();
  }
}

/** It may be closing already, and that is all the same. */
function ignore(): void {}
