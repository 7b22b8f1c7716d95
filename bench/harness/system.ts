/*
 * What a system under test is. Each is a file of `peers/systems/`, plain JavaScript, so that the server process runs what
 * a user's would run: no loader, no compiler.
 */

/** What a run asks of a system beside delivering. */
export interface SystemOptions {
  /** Makes each subscriber's value its own. */
  readonly map?: boolean;
  /** Revives dates, and sends values through superjson. */
  readonly superjson?: boolean;
}

export interface System {
  /** Serves until the process ends. Answers the address that clients connect to. */
  start(redisUrl: string, options: SystemOptions): Promise<string>;
  /** Opens what writes entries: the way of this system that a user would take. */
  publisher(redisUrl: string): Publisher;
  readonly wire: Wire;
}

export interface Publisher {
  publish(topic: string, text: string): Promise<unknown>;
}

/** One client's subscription. */
export interface Subscription {
  readonly topic: string;
  /** Where to resume: what `tokenOf` took from the last frame. */
  readonly lastEventId?: string | undefined;
  /** What the client must remember beside it, where the protocol has such a thing. */
  session?: unknown;
}

/** The client's side of a system's protocol: as much as a load client needs. */
export interface Wire {
  readonly transport: 'ws' | 'sse';
  /** The WebSocket subprotocol. */
  readonly protocol?: string;
  /** What is sent first: over SSE the path asked for, over WebSocket a text, or nothing. */
  open(subscription: Subscription): string | undefined;
  /** Reads a frame that holds no entry. Throws where it is a refusal. */
  control(
    text: string,
    subscription: Subscription,
  ): { readonly send?: string; readonly ready?: boolean } | undefined;
  /** Takes from a frame with an entry what resumes after it. */
  tokenOf(text: string): string;
}

/** Loads a system by its name. */
export async function loadSystem(name: string): Promise<System> {
  const url = new URL(`../peers/systems/${name}.mjs`, import.meta.url);
  // The files are JavaScript; that each exports a system is checked by running it.
  const module = (await import(url.href)) as { readonly system: System };
  return module.system;
}
