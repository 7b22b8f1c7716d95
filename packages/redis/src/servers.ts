import type { Redis } from 'ioredis';
import { type Connection, type ConnectOptions, connect } from './connection.ts';

/** A server that holds topics: the only one, or a primary of a cluster. One object each, for as long as the broker lives. */
export interface Server {
  /** Names it in errors. */
  readonly name: string;
  /** Opens a connection to it. Rejects with `UNAVAILABLE`. */
  connect(options: ConnectOptions): Promise<Connection>;
}

/** The servers of a broker, and which of them holds what. */
export interface Servers {
  /** Whether keys are spread over servers, which then send those who ask the wrong one to another. */
  readonly spread: boolean;
  /**
   * Finds the server that holds a key, as far as is known. Rejects with `UNAVAILABLE` where nobody says. Those who ask after
   * one key are answered in the order in which they asked.
   */
  serverOf(key: string): Promise<Server>;
  /** Groups keys so that one script may be given those of a group. */
  together(keys: readonly string[]): readonly (readonly string[])[];
  /**
   * Learns from an error that a server answered, or that a connection to it broke with. Answers the server that is to be
   * asked instead, this once, where the error says so.
   */
  heard(error: unknown, server: Server): Server | undefined;
}

/** The server of a plain client, or the primary that sentinels name: they are asked anew for each connection. */
export function singleServer(client: Redis): Servers {
  const server: Server = {
    name: 'Redis',
    connect: (options) => connect(client, options),
  };
  const located = Promise.resolve(server);
  return {
    spread: false,
    serverOf: () => located,
    together: (keys) => [keys],
    heard: () => undefined,
  };
}
