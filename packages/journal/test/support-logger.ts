import type { Logger } from '@brokerfeed/core';

/** A logger that keeps the names of its events. */
export function eventLog(): { readonly logger: Logger; readonly events: string[] } {
  const events: string[] = [];
  const keep = (_: object, event: string): void => void events.push(event);
  return { events, logger: { debug: keep, info: keep, warn: keep, error: keep } };
}
