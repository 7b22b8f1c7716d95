import { createHash } from 'node:crypto';
import { headerBag, NO_HEADERS } from './append-check.ts';
import type { Commit, Entry, Headers } from './broker.ts';
import { openSealed, SealRefusal, seal } from './seal.ts';
import type { KeyRing, SealingKey } from './seal-keys.ts';
import type { SealOpener } from './seal-opener.ts';

/** The one header that the store sees: those of the commit, sealed. It is always there, so that it cannot be taken off. */
const SEAL_HEADER = 'brokerfeed-seal';

/** What is handed to the store in place of a commit. */
export interface SealedAppend {
  readonly values: readonly string[];
  readonly headers: Headers;
}

/**
 * Seals a commit: each value by itself, and the headers bound to all of them. With an idempotency key the values come out
 * the same each time; headers never matter to a repeat, and may have changed.
 */
export function sealCommit(
  entries: readonly Entry[],
  headers: Headers,
  topic: string,
  key: SealingKey,
  idempotencyKey: string | undefined,
): SealedAppend {
  const values = entries.map(({ value }, index) => {
    const repeat = idempotencyKey === undefined ? undefined : `${index} ${idempotencyKey}`;
    return seal(value, key, { purpose: 'value', topic }, repeat);
  });
  const pairs = JSON.stringify(Object.entries(headers));
  const sealed = seal(pairs, key, { purpose: 'headers', topic, commit: digestOf(values) });
  return { values, headers: { [SEAL_HEADER]: sealed } };
}

/** Makes the commit that readers get. Nothing is opened before it is read. */
export function openCommit(
  commit: Commit,
  topic: string,
  opener: SealOpener,
  ring: KeyRing,
): Commit {
  const { previous, position, entries } = commit;
  let headers: { readonly bag: Headers } | { readonly error: unknown } | undefined;
  const openHeaders = (): Headers => {
    headers ??= attempt(() => headersOf(entries, topic, ring));
    if ('error' in headers) throw headers.error;
    return headers.bag;
  };
  const opening = entries.map((entry, index) => {
    const place = { generation: position.ordinal, index };
    const scope = { purpose: 'value', topic } as const;
    return new SealedEntry(() => opener.open(entry, ring, scope, openHeaders, place));
  });
  return { previous, position, entries: opening };
}

/**
 * An entry that is opened when it is first read, and once for all who read it. (Getters with work in them: there is no
 * later moment that every reader passes, and an entry that nobody reads is not worth opening.)
 */
class SealedEntry implements Entry {
  #open: (() => Entry) | undefined;
  #opened: Entry | undefined;

  constructor(open: () => Entry) {
    this.#open = open;
  }

  get value(): string {
    return this.#entry().value;
  }

  get headers(): Headers {
    return this.#entry().headers;
  }

  get unreadable(): Error | undefined {
    return this.#entry().unreadable;
  }

  #entry(): Entry {
    if (this.#opened === undefined) {
      this.#opened = (this.#open as () => Entry)();
      // The sealed text is of no more use.
      this.#open = undefined;
    }
    return this.#opened;
  }
}

function headersOf(entries: readonly Entry[], topic: string, ring: KeyRing): Headers {
  const sealed = entries[0]?.headers[SEAL_HEADER];
  if (sealed === undefined) throw new SealRefusal('format');
  const commit = digestOf(entries.map(({ value }) => value));
  const pairs = openSealed(sealed, ring, { purpose: 'headers', topic, commit });
  if (pairs === '[]') return NO_HEADERS;
  // It has proved to be written by `sealCommit`.
  return headerBag(JSON.parse(pairs) as [string, string][]);
}

function attempt(open: () => Headers): { readonly bag: Headers } | { readonly error: unknown } {
  try {
    return { bag: open() };
  } catch (error) {
    return { error };
  }
}

/** Sealed values are long and all different: what stands for them are their ends, which hold the tags. */
function digestOf(values: readonly string[]): string {
  const hash = createHash('sha256');
  for (const value of values) hash.update(`${value.length} ${value.slice(-TAG_CHARACTERS)} `);
  return hash.digest('base64');
}

const TAG_CHARACTERS = 24;
