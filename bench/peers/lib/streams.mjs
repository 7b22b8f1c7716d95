import { Redis } from 'ioredis';

/** Entries that one read of a stream brings at most. */
const READ_COUNT = 256;
const PAGE_COUNT = 1_000;

export const connect = (url) => new Redis(url, { maxRetriesPerRequest: null });

export const keyOf = (topic) => `topic:${topic}`;

const entryOf = ([id, [, text]]) => ({ id, text });

/** Compares two stream ids as numbers. */
export function isAfter(a, b) {
  const [aMs, aSeq] = a.split('-').map(Number);
  const [bMs, bSeq] = b.split('-').map(Number);
  return aMs > bMs || (aMs === bMs && aSeq > bSeq);
}

/** Writes entries as a user of plain Redis Streams does. */
export function streamPublisher(redisUrl) {
  const redis = connect(redisUrl);
  return { publish: (topic, text) => redis.xadd(keyOf(topic), '*', 'd', text) };
}

/** The shared reader that people write: one blocking connection for each topic that has listeners, in the whole process. */
export class StreamReaders {
  #redisUrl;
  #commands;
  #readers = new Map();

  constructor(redisUrl) {
    this.#redisUrl = redisUrl;
    this.#commands = connect(redisUrl);
  }

  /** Calls back with the entries of each reply. Resolves, with what ends it, once nothing new can be missed. */
  async listen(topic, listener) {
    let reader = this.#readers.get(topic);
    if (reader === undefined) {
      reader = { listeners: new Set(), connection: connect(this.#redisUrl), last: '0-0' };
      reader.started = this.#start(topic, reader);
      this.#readers.set(topic, reader);
    }
    reader.listeners.add(listener);
    await reader.started;
    return () => {
      reader.listeners.delete(listener);
      if (reader.listeners.size > 0) return;
      if (this.#readers.get(topic) === reader) this.#readers.delete(topic);
      reader.connection.disconnect();
    };
  }

  /** Reads what follows an id. */
  async page(topic, after) {
    const rows = await this.#commands.xrange(keyOf(topic), `(${after}`, '+', 'COUNT', PAGE_COUNT);
    return { entries: rows.map(entryOf), atEnd: rows.length < PAGE_COUNT };
  }

  async #start(topic, reader) {
    const newest = await this.#commands.xrevrange(keyOf(topic), '+', '-', 'COUNT', 1);
    reader.last = newest[0]?.[0] ?? '0-0';
    // It ends with its connection.
    this.#read(topic, reader).catch(() => {});
  }

  async #read(topic, reader) {
    for (;;) {
      const reply = await reader.connection.xread(
        'COUNT',
        READ_COUNT,
        'BLOCK',
        0,
        'STREAMS',
        keyOf(topic),
        reader.last,
      );
      const rows = reply?.[0]?.[1];
      if (rows === undefined) continue;
      reader.last = rows.at(-1)[0];
      const entries = rows.map(entryOf);
      for (const listener of reader.listeners) listener(entries);
    }
  }
}
