import { entryAddress, type TokenFields } from '@brokerfeed/core/wire';

/** Commits whose ids are remembered: a rolled-back log is told by another id under a number that is known. */
const REMEMBERED_COMMITS = 64;

/**
 * Tells entries that came before, by `(generation, index)`. A commit that was received in part is received again from its
 * start after a resume; that is where repeats come from.
 */
export class Repeats {
  #epoch = '';
  #generation = 0;
  #index = 0;
  readonly #ids = new Map<number, string>();

  /** Tells whether the entry of this token came before, and remembers it. */
  has(fields: TokenFields): boolean {
    this.see(fields);
    const address = entryAddress(fields);
    if (address === undefined) return false;
    const { generation, index } = address;
    if (generation < this.#generation) return true;
    if (generation === this.#generation && index <= this.#index) return true;
    this.#generation = generation;
    this.#index = index;
    return false;
  }

  /** Notes a position. Where it shows that this is another log than before, all that is known of that one is forgotten. */
  see({ epoch, ordinal, id }: TokenFields): void {
    const known = this.#ids.get(ordinal);
    if (epoch !== this.#epoch || (known !== undefined && known !== id)) this.forget();
    this.#epoch = epoch;
    this.#ids.set(ordinal, id);
    for (const oldest of this.#ids.keys()) {
      if (this.#ids.size <= REMEMBERED_COMMITS) break;
      this.#ids.delete(oldest);
    }
  }

  /** Notes the position that the server stands at. One behind what came is that of a log that was rolled back. */
  seePosition(fields: TokenFields): void {
    if (fields.ordinal < this.#generation) this.forget();
    this.see(fields);
  }

  /** Forgets what came: from here on the consumer is given entries anew. */
  forget(): void {
    this.#epoch = '';
    this.#generation = 0;
    this.#index = 0;
    this.#ids.clear();
  }
}
