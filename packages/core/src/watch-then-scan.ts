import type { Watch } from './watch.ts';
import type { WatchEvent } from './watch-event.ts';

/** The steps of {@link watchThenScan}. */
export interface WatchThenScanOptions<Key> {
  /** Starts the watch. Called once, before the first scan. */
  readonly watch: () => Watch | Promise<Watch>;
  /** Reads the whole state anew, as it is when it is called or later. */
  readonly scan: () => void | Promise<void>;
  /**
   * Names what an event points at. An event is not a snapshot: what it carries may be older than what a scan has read.
   * So by default only the name is passed on; answer the event itself where its value is the answer, as in an audit log.
   * `undefined` leaves it out.
   */
  readonly key: (event: WatchEvent) => Key | undefined;
  /** Reads what the key points at, as it is now, and takes that over. Awaited before the next. */
  readonly apply: (key: Key) => void | Promise<void>;
}

/**
 * Keeps a copy of something that others change: watches, then scans, then applies each event, and scans again where
 * events are missing. The copy converges on the original whatever is written meanwhile, provided that a write can be
 * read before it is appended or announced.
 *
 * Resolves when the watch was closed. Rejects with what ended the watch otherwise, or what a callback threw; the watch is
 * closed then.
 */
export async function watchThenScan<Key>(options: WatchThenScanOptions<Key>): Promise<void> {
  const { scan, key, apply } = options;
  // First: what is written during the scan must come as an event, since the scan may have passed its place already.
  const watch = await options.watch();
  try {
    await scan();
    for await (const item of watch) {
      if (item.kind === 'lagged') {
        await scan();
        continue;
      }
      const name = key(item);
      if (name !== undefined) await apply(name);
    }
  } finally {
    await watch[Symbol.asyncDispose]();
  }
}
