/** tRPC's WebSocket protocol, as its client speaks it. */
export const trpcWs = {
  transport: 'ws',
  open({ topic, lastEventId }) {
    const params = { path: 'orders', input: { topic }, lastEventId };
    return JSON.stringify({ id: 1, jsonrpc: '2.0', method: 'subscription', params });
  },
  control(text) {
    if (text.includes('"error"')) throw new Error(text);
    return { ready: text.includes('"started"') };
  },
  tokenOf: (text) => JSON.parse(text).result.id,
};

/** tRPC's server-sent events, as an `EventSource` reads them. */
export const trpcSse = {
  transport: 'sse',
  open({ topic }) {
    return `/orders?input=${encodeURIComponent(JSON.stringify({ topic }))}`;
  },
  control(text) {
    if (text.includes('serialized-error')) throw new Error(text);
    return { ready: text.includes('event: connected') };
  },
  tokenOf: (text) => /^id: (.*)$/m.exec(text)[1],
};
