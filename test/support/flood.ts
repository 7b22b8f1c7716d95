import type { ObservedBroker } from './observed.ts';
import type { RawClient } from './raw-client.ts';

/** Entries of a commit of {@link flood}. */
export const COMMIT = 100;

/** An entry of some 200 bytes. */
export function fill(n: number): string {
  return JSON.stringify({ n, fill: 'x'.repeat(180) });
}

/** Appends entries, and lets the process do its other work between commits. */
export async function flood(
  broker: ObservedBroker,
  topic: string,
  from: number,
  to: number,
): Promise<void> {
  for (let n = from; n < to; n += COMMIT) {
    await broker.log.append(
      topic,
      Array.from({ length: COMMIT }, (_, at) => fill(n + at)),
    );
    await new Promise(setImmediate);
  }
}

/** Counts what comes in order, and keeps nothing. */
export function counter(client: RawClient): { readonly next: number } {
  const seen = { next: 0 };
  client.ws.removeAllListeners('message');
  client.ws.on('message', (data) => {
    const { result } = JSON.parse(String(data));
    if (result?.type !== 'data') return;
    if (result.data.data.n !== seen.next)
      throw new Error(`${result.data.data.n} came at ${seen.next}`);
    seen.next += 1;
  });
  return seen;
}
