import { decodeCheckpoint } from './checkpoint.ts';
import { DamageError } from './damage.ts';
import { type FileSystem, nodeFileSystem } from './file-system.ts';
import { readIdentity } from './identity.ts';
import { JournalState } from './journal-state.ts';
import { Layout, parseCheckpointName, parseSegmentName } from './layout.ts';
import { Segment } from './segment.ts';
import { SegmentIndex } from './segment-index.ts';
import { scanHeader, scanSegment } from './segment-scan.ts';

/** Something that `verify` has to say. */
export interface Finding {
  /**
   * `damage`: bytes that no append wrote, or records that are missing. `torn`: the end of the newest segment is not whole,
   * which opening repairs. `cache`: a file that will be rebuilt. `note`: nothing is wrong with it.
   */
  readonly kind: 'damage' | 'torn' | 'cache' | 'note';
  /** Its path. */
  readonly file: string;
  /** Where in the file, in bytes. */
  readonly offset: number;
  readonly message: string;
}

/** What `verify` read. */
export interface VerifyReport {
  /** What it has to say; empty of a journal in order. */
  readonly findings: readonly Finding[];
  readonly segments: number;
  readonly records: number;
  readonly entries: number;
  readonly topics: number;
  readonly bytes: number;
}

const UNLIMITED = { windowMs: Number.MAX_SAFE_INTEGER, maxKeys: Number.POSITIVE_INFINITY };

/**
 * Reads a whole journal without its caches: checks every line, sequence and ordinal, then compares checkpoints and indexes
 * with what the segments say. Changes nothing and takes no lock: a journal that is open may show a torn end. What is wrong
 * is a finding, a folder without a journal too; it throws only what the file system does.
 */
export function verify(dir: string, fs: FileSystem = nodeFileSystem): VerifyReport {
  return new Verification(new Layout(dir), fs).run();
}

class Verification {
  readonly #layout: Layout;
  readonly #fs: FileSystem;
  readonly #findings: Finding[] = [];
  #records = 0;
  #entries = 0;
  #bytes = 0;

  constructor(layout: Layout, fs: FileSystem) {
    this.#layout = layout;
    this.#fs = fs;
  }

  run(): VerifyReport {
    const layout = this.#layout;
    const firsts = this.#fs.list(layout.segments).flatMap((name) => parseSegmentName(name) ?? []);
    const journal = readIdentity(this.#fs, layout) ?? this.#unnamed(firsts);
    const checkpoints = this.#checkpoints(journal);
    let state = new JournalState(journal, UNLIMITED);
    for (const first of firsts) {
      if (state.segments.length > 0 && first !== state.next) {
        const missing = `sequences ${state.next} to ${first - 1} are missing before this segment`;
        this.#find('damage', layout.segment(first), 0, missing);
      }
      if (first !== state.next) {
        // What follows a hole is checked by itself; a checkpoint knows what was in the hole.
        if (state.segments.length > 0) checkpoints.clear();
        state = new JournalState(journal, UNLIMITED);
        state.next = first;
      }
      this.#segment(state, first, first === firsts.at(-1), checkpoints);
    }
    for (const [next, path] of checkpoints) {
      const behind =
        next < (firsts[0] ?? 0) ? 'before the oldest segment' : 'past the end of the log';
      this.#find(next < state.next ? 'note' : 'damage', path, 0, `stands ${behind}`);
    }
    return {
      findings: this.#findings,
      segments: firsts.length,
      records: this.#records,
      entries: this.#entries,
      topics: state.topics.size,
      bytes: this.#bytes,
    };
  }

  #unnamed(firsts: readonly number[]): string {
    if (firsts.length === 0) {
      // A mistyped path must not look like a journal in good health.
      this.#find('damage', this.#layout.identity, 0, 'the folder holds no journal');
      return '';
    }
    this.#find('cache', this.#layout.identity, 0, 'missing or not whole: rebuilt from a header');
    for (const first of firsts) {
      const path = this.#layout.segment(first);
      const bytes = this.#fs.readFile(path) ?? Buffer.alloc(0);
      const found = scanHeader(bytes, path);
      if (found !== undefined) return found.header.journal;
    }
    return '';
  }

  /** Reads the checkpoints that are whole: which sequence is next after them, and their files. */
  #checkpoints(journal: string): Map<number, string> {
    const whole = new Map<number, string>();
    for (const name of this.#fs.list(this.#layout.checkpoints)) {
      const next = parseCheckpointName(name);
      if (next === undefined) continue;
      const path = this.#layout.checkpoint(next);
      const bytes = this.#fs.readFile(path);
      if (bytes && decodeCheckpoint(bytes, journal, UNLIMITED)) whole.set(next, path);
      else this.#find('cache', path, 0, 'the checkpoint is not whole, or of another journal');
    }
    return whole;
  }

  #segment(
    state: JournalState,
    first: number,
    newest: boolean,
    checkpoints: Map<number, string>,
  ): void {
    const path = this.#layout.segment(first);
    const bytes = this.#fs.readFile(path) ?? Buffer.alloc(0);
    this.#bytes += bytes.length;
    try {
      const found = scanHeader(bytes, path);
      if (found === undefined) {
        this.#find(newest ? 'torn' : 'damage', path, 0, 'the header is not whole');
        state.next = first;
        return;
      }
      const { header, end } = found;
      if (header.journal !== state.journal || header.first !== first) {
        this.#find('damage', path, 0, 'the header is that of another segment');
      }
      const segment = new Segment(first, header.boot);
      segment.index = new SegmentIndex();
      segment.bytes = end;
      state.segments.push(segment);
      state.salt = header.salt;
      const scan = scanSegment(state, segment, bytes.subarray(end), end, path, (next) =>
        this.#compareCheckpoint(state, next, checkpoints),
      );
      this.#records += segment.last - first + 1;
      this.#entries += segment.entries;
      segment.index.covered = scan.wholeBytes;
      if (scan.wholeBytes < bytes.length) {
        const what = `${bytes.length - scan.wholeBytes} bytes are not whole lines`;
        this.#find(newest ? 'torn' : 'damage', path, scan.wholeBytes, what);
      } else if (!newest) this.#compareIndex(segment, segment.index);
      segment.index = undefined;
    } catch (error) {
      if (error instanceof DamageError) this.#find('damage', error.file, error.offset, error.what);
      else this.#find('damage', path, 0, (error as Error).message);
    }
  }

  /** Compares a checkpoint with the state at its place in the log. */
  #compareCheckpoint(state: JournalState, next: number, checkpoints: Map<number, string>): void {
    const path = checkpoints.get(next);
    if (path === undefined) return;
    checkpoints.delete(next);
    const bytes = this.#fs.readFile(path);
    const checkpoint = bytes && decodeCheckpoint(bytes, state.journal, UNLIMITED);
    if (checkpoint === undefined) return;
    // It may stem from before segments went.
    checkpoint.state.retire(state.segments[0]?.first ?? 0);
    if (comparable(checkpoint.state) !== comparable(state)) {
      this.#find('damage', path, 0, 'the checkpoint says something else than the segments');
    }
  }

  #compareIndex(segment: Segment, index: SegmentIndex): void {
    const path = this.#layout.index(segment.first);
    const file = this.#fs.readFile(path);
    if (file === undefined) return;
    const stored = SegmentIndex.decode(file);
    if (stored === undefined) this.#find('cache', path, 0, 'the index is not whole');
    else if (stored.covered === index.covered && !stored.encode().equals(index.encode())) {
      this.#find('damage', path, 0, 'the index says something else than the segment');
    }
  }

  #find(kind: Finding['kind'], file: string, offset: number, message: string): void {
    this.#findings.push({ kind, file, offset, message });
  }
}

/**
 * What two states must agree on, as text. Keys may be older than the segments, and idle topics known from before them:
 * neither is compared.
 */
function comparable(state: JournalState): string {
  const topics = [...state.topics.values()]
    .filter((topic) => topic.runs.length > 0)
    .map(({ name, epoch, floor, floorBoot, last }) => [name, epoch, last, floor, floorBoot])
    .sort();
  return JSON.stringify([state.next, state.salt, topics]);
}
