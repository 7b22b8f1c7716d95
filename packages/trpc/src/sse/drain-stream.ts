import type { DrainMember } from '../drain.ts';
import type { NodeResponse } from './node-response.ts';

/**
 * The response of a subscription, which is ended when its client is to move. tRPC's `return` event would tell the client
 * that the subscription is complete; an end without one makes an EventSource come back with its newest token.
 */
export class DrainStream implements DrainMember {
  readonly #abort = new AbortController();
  readonly #response: NodeResponse;
  #phase: 'open' | 'leaving' | 'left' = 'open';

  /** Takes the place of the response's `write`. */
  constructor(response: NodeResponse) {
    this.#response = response;
    const { write } = response;
    response.write = (...args: unknown[]) => {
      // What tRPC's stream makes of the abort, such as `return`. The error's name has it stop without a word.
      if (this.#phase === 'left') throw new DOMException('the client was moved', 'AbortError');
      const takesMore: boolean = Reflect.apply(write, response, args);
      if (this.#phase === 'leaving') this.#leave();
      return takesMore;
    };
  }

  /** Answers a signal that aborts with the one given, and on a move: to tRPC, a response that was ended is done. */
  signalBeside(given: AbortSignal): AbortSignal {
    // Not `AbortSignal.any`, which keeps listeners in a list of the whole process.
    const abort = (): void => this.#abort.abort(given.reason);
    if (given.aborted) abort();
    else given.addEventListener('abort', abort, { once: true });
    return this.#abort.signal;
  }

  move(): void {
    // Before its headers it would be no event stream, from which an EventSource does not come back.
    if (this.#response.headersSent) this.#leave();
    else if (this.#phase === 'open') this.#phase = 'leaving';
  }

  close(): void {
    this.cut();
  }

  cut(): void {
    this.#response.destroy();
  }

  #leave(): void {
    if (this.#phase === 'left') return;
    const { socket, stream } = this.#response;
    // The client must not come back by the same connection, past the balancer. An HTTP/2 one closes when its other
    // streams are done.
    if (stream !== undefined) stream.session?.close();
    else this.#response.on('finish', () => socket?.end());
    this.#response.end();
    this.#phase = 'left';
    this.#abort.abort();
  }
}
