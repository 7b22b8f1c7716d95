import type { ServerResponse } from 'node:http';
import { type Broker, feedHealth } from '@brokerfeed/core';

/** How long feeds may be without their log before new clients are better off elsewhere, in milliseconds. */
const MAX_STALL_MS = 10_000;

/**
 * Answers a load balancer's probe: 503 while this server leaves, or while its feeds get nothing of their log. Its own clients
 * stay: they wait for the same log, and tails try again.
 */
export function answerReady(
  response: ServerResponse,
  broker: Broker,
  leaving: boolean,
  maxStallMs = MAX_STALL_MS,
): void {
  const health = feedHealth(broker);
  const ready = !leaving && health.stalledMs <= maxStallMs;
  response.writeHead(ready ? 200 : 503, { 'content-type': 'application/json' });
  response.end(JSON.stringify({ ready, leaving, ...health }));
}
