import type { EncodedRun, FeedReader, FrameEncoder, PushTarget } from '@brokerfeed/core';
import type { TrackedEnvelope } from '@trpc/server';
import type { PushOffer, Serializer } from '../push-offer.ts';
import { type FeedConnection, MAX_SHARED_PREFIX_LENGTH } from './feed-connection.ts';
import { FrameTrial } from './frame-trial.ts';
import { dataText, wsEncoder } from './ws-encoder.ts';

/** Texts that start the frames of a request, kept at most. */
const MAX_PREFIXES = 1024;

const prefixes = new Map<string, string>();

/** Answers one and the same text for all connections: a lookup by it compares no characters then. */
function shared(prefix: string): string {
  if (prefix.length > MAX_SHARED_PREFIX_LENGTH) return prefix;
  const known = prefixes.get(prefix);
  if (known !== undefined) return known;
  if (prefixes.size >= MAX_PREFIXES) prefixes.clear();
  prefixes.set(prefix, prefix);
  return prefix;
}

/** The subscription that has just started on a connection. */
export class WsOffer implements PushOffer {
  readonly #connection: FeedConnection;
  readonly #prefix: string;

  constructor(connection: FeedConnection, prefix: string) {
    this.#connection = connection;
    this.#prefix = shared(prefix);
  }

  push(reader: Pick<FeedReader, 'push'>, serializer: Serializer): Promise<void> {
    return reader.push(new WsTarget(this.#connection, this.#prefix, wsEncoder(serializer)));
  }

  watch(envelope: TrackedEnvelope<unknown>, serializer: Serializer): () => boolean {
    let text: string;
    try {
      text = dataText(envelope[0], envelope[1], serializer);
    } catch {
      return () => false; // tRPC cannot write it either, and says so to the client
    }
    const trial = new FrameTrial(this.#connection, envelope, this.#prefix + text);
    return () => trial.passed();
  }

  isFull(): boolean {
    return this.#connection.isFull();
  }

  whenWritable(callback: () => void): void {
    this.#connection.whenWritable(callback);
  }
}

/** One subscription on a connection. */
class WsTarget implements PushTarget {
  readonly encoder: FrameEncoder;
  readonly #connection: FeedConnection;
  readonly #prefix: string;

  constructor(connection: FeedConnection, prefix: string, encoder: FrameEncoder) {
    this.#connection = connection;
    this.#prefix = prefix;
    this.encoder = encoder;
  }

  isFull(): boolean {
    return this.#connection.isFull();
  }

  whenWritable(callback: () => void): void {
    this.#connection.whenWritable(callback);
  }

  write(run: EncodedRun): void {
    this.#connection.write(this.#prefix, run);
  }
}
