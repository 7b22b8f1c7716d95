import type { FrameEncoder } from '@brokerfeed/core';
import { isTrackedEnvelope } from '@trpc/server';
import type { Serializer } from '../push-offer.ts';

const LINE_END = /[\r\n]/;

/**
 * Writes a tracked value as an event of tRPC's event stream, byte for byte as its own adapters do (or with the
 * value's own JSON, where that is given): data, id, and a blank line twice.
 */
class SseEncoder implements FrameEncoder {
  readonly #serializer: Serializer;

  constructor(serializer: Serializer) {
    this.#serializer = serializer;
  }

  encode(token: string, value: unknown, json?: string): string {
    const bare = isTrackedEnvelope(value) ? value[1] : value;
    const data = this.#serializer.serialize(bare);
    // A line of its own for each line of it would be another format than tRPC's.
    const text = data === bare && json !== undefined && !LINE_END.test(json) ? json : undefined;
    return `data: ${text ?? JSON.stringify(data)}\nid: ${token}\n\n\n`;
  }
}

const encoders = new WeakMap<Serializer, SseEncoder>();

/** The encoder of a transformer: one, so that all subscribers share what it wrote. */
export function sseEncoder(serializer: Serializer): FrameEncoder {
  let encoder = encoders.get(serializer);
  if (encoder === undefined) {
    encoder = new SseEncoder(serializer);
    encoders.set(serializer, encoder);
  }
  return encoder;
}
