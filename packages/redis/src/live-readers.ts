import type { BrokerError } from '@brokerfeed/core';
import type { Commands } from './commands.ts';
import { type Ear, LiveReader, type Watch, type WatchEvents } from './live-reader.ts';
import type { ResolvedOptions } from './options.ts';
import type { Server, Servers } from './servers.ts';

/** The live readers of a broker: one for each server that holds topics which are read. */
export class LiveReaders {
  readonly #options: ResolvedOptions;
  readonly #servers: Servers;
  readonly #commands: Commands;
  /** Those that take topics. */
  readonly #readers = new Map<Server, LiveReader>();
  readonly #ending = new Set<Promise<void>>();
  #closed: BrokerError | undefined;

  constructor(options: ResolvedOptions, servers: Servers, commands: Commands) {
    this.#options = options;
    this.#servers = servers;
    this.#commands = commands;
  }

  /** Reads a topic live. Resolves when whatever is announced from then on will be heard; rejects where that cannot be. */
  async watch(key: string, events: WatchEvents): Promise<Watch> {
    const server = await this.#servers.serverOf(key);
    if (this.#closed !== undefined) throw this.#closed;
    return await this.#readerOf(server).watch(key, events);
  }

  /** Hears what is said on a channel. Resolves, with what ends it, when whatever is said from then on will be heard. */
  async listen(channel: string, ear: Ear): Promise<() => void> {
    const server = await this.#servers.serverOf(channel);
    if (this.#closed !== undefined) throw this.#closed;
    return await this.#readerOf(server).listen(channel, ear);
  }

  /** Ends every watch with an error, and every connection. */
  async close(error: BrokerError): Promise<void> {
    this.#closed = error;
    await Promise.all([
      ...[...this.#readers.values()].map((reader) => reader.close(error)),
      ...this.#ending,
    ]);
  }

  #readerOf(server: Server): LiveReader {
    const open = this.#readers.get(server);
    if (open !== undefined) return open;
    const reader = new LiveReader(server, this.#options, this.#servers, this.#commands, (error) => {
      if (this.#readers.get(server) !== reader) return;
      this.#readers.delete(server);
      const end = reader.close(error);
      this.#ending.add(end);
      void end.then(() => this.#ending.delete(end));
    });
    this.#readers.set(server, reader);
    return reader;
  }
}
