import type { FrameEncoder } from '@brokerfeed/core';
import { isTrackedEnvelope } from '@trpc/server';
import type { Serializer } from '../push-offer.ts';

/**
 * Writes a tracked value as an event of tRPC's event stream, byte for byte as its own adapters do: data, id, and a blank
 * line twice.
 */
class SseEncoder implements FrameEncoder {
  readonly #serializer: Serializer;

  constructor(serializer: Serializer) {
    this.#serializer = serializer;
  }

  encode(token: string, value: unknown): Uint8Array {
    const data = this.#serializer.serialize(isTrackedEnvelope(value) ? value[1] : value);
    return Buffer.from(`data: ${JSON.stringify(data)}\nid: ${token}\n\n\n`);
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
