/** Leads nowhere: browsers refuse this port without asking anybody. */
const NOWHERE_PORT = '9';

/**
 * A client's connection to the network, as its WebSocket and EventSource see it. While it is cut, what was open is closed and
 * what is tried fails, with whatever was under way lost: as behind a router that was unplugged.
 */
export class Line {
  readonly WebSocket: typeof WebSocket;
  readonly EventSource: typeof EventSource;
  readonly #open = new Set<() => void>();
  #isCut = false;

  constructor() {
    const lead = (url: string | URL): URL => this.#lead(url);
    const open = this.#open;
    this.WebSocket = class extends WebSocket {
      constructor(url: string | URL, protocols?: string | string[]) {
        super(lead(url), protocols);
        const cut = (): void => this.close();
        open.add(cut);
        this.addEventListener('close', () => open.delete(cut));
      }
    };
    this.EventSource = class extends EventSource {
      readonly #cut = (): void => {
        this.close();
        this.dispatchEvent(new Event('error'));
      };

      constructor(url: string | URL, init?: EventSourceInit) {
        super(lead(url), init);
        open.add(this.#cut);
      }

      override close(): void {
        open.delete(this.#cut);
        super.close();
      }
    };
  }

  get isCut(): boolean {
    return this.#isCut;
  }

  set isCut(isCut: boolean) {
    this.#isCut = isCut;
    if (isCut) for (const cut of [...this.#open]) cut();
    // What a browser says when its network is back; the link then does not wait any longer.
    else window.dispatchEvent(new Event('online'));
  }

  #lead(url: string | URL): URL {
    const led = new URL(url, location.href);
    if (this.#isCut) led.port = NOWHERE_PORT;
    return led;
  }
}
