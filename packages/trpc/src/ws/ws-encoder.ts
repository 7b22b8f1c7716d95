import type { FrameEncoder } from '@brokerfeed/core';
import { isTrackedEnvelope } from '@trpc/server';
import type { Serializer } from '../push-offer.ts';

/**
 * Writes what follows the request id in a data frame of tRPC's WebSocket protocol, byte for byte as its own adapter does.
 * The id is the one part that differs between subscribers.
 *
 * @see {@link https://trpc.io/docs/server/websockets#websockets-rpc-specification}
 */
export function dataText(token: string, value: unknown, serializer: Serializer): string {
  const data = serializer.serialize({ id: token, data: value });
  return `"result":${JSON.stringify({ type: 'data', data, id: token })}}`;
}

class WsEncoder implements FrameEncoder {
  readonly #serializer: Serializer;

  constructor(serializer: Serializer) {
    this.#serializer = serializer;
  }

  encode(token: string, value: unknown): Uint8Array {
    const bare = isTrackedEnvelope(value) ? value[1] : value;
    return Buffer.from(dataText(token, bare, this.#serializer));
  }
}

const encoders = new WeakMap<Serializer, WsEncoder>();

/** The encoder of a transformer: one, so that all subscribers share what it wrote. */
export function wsEncoder(serializer: Serializer): FrameEncoder {
  let encoder = encoders.get(serializer);
  if (encoder === undefined) {
    encoder = new WsEncoder(serializer);
    encoders.set(serializer, encoder);
  }
  return encoder;
}
