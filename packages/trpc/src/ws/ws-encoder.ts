import type { FrameEncoder } from '@brokerfeed/core';
import { isTrackedEnvelope } from '@trpc/server';
import type { Serializer } from '../push-offer.ts';

/**
 * Writes what follows the request id in a data frame of tRPC's WebSocket protocol, byte for byte as its own adapter does; or
 * with the value's own JSON, where that is given. The id is the one part that differs between subscribers.
 *
 * @see {@link https://trpc.io/docs/server/websockets#websockets-rpc-specification}
 */
export function dataText(
  token: string,
  value: unknown,
  serializer: Serializer,
  json?: string,
): string {
  const bare = { id: token, data: value };
  const data = serializer.serialize(bare);
  if (data === bare && isUntouched(bare, token, value) && isBare(value)) {
    // Nested in other objects, the same text costs twice as much.
    const id = JSON.stringify(token);
    return `"result":{"type":"data","data":{"id":${id},"data":${json ?? JSON.stringify(value)}},"id":${id}}}`;
  }
  return `"result":${JSON.stringify({ type: 'data', data, id: token })}}`;
}

/** Whether a transformer that answered what it was given has left it as it was. */
function isUntouched(bare: { id: string; data: unknown }, token: string, value: unknown): boolean {
  return bare.id === token && bare.data === value && Object.keys(bare).length === 2;
}

/** Whether a value has the same JSON by itself as under a key: it has some, and is not told its key. */
function isBare(value: unknown): boolean {
  if (typeof value === 'object') {
    return value === null || typeof (value as { toJSON?: unknown }).toJSON !== 'function';
  }
  return typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean';
}

class WsEncoder implements FrameEncoder {
  readonly #serializer: Serializer;

  constructor(serializer: Serializer) {
    this.#serializer = serializer;
  }

  encode(token: string, value: unknown, json?: string): string {
    return dataText(token, isTrackedEnvelope(value) ? value[1] : value, this.#serializer, json);
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
