import { parseToken } from '@brokerfeed/core/wire';
import { entryToken } from './tokens.ts';

/** An entry as a server would send it, under a name that no other has. */
export interface PlayedEntry {
  readonly token: string;
  readonly name: string;
  readonly generation: number;
  readonly index: number;
}

/** A log of commits with several entries, which can be trimmed, rolled back and made anew. */
export class PlayedLog {
  #commits: { readonly id: string; readonly names: readonly string[] }[] = [];
  #trimmed = 0;
  #epoch = 0;
  #born = 0;

  append(entries: number): void {
    this.#born += 1;
    const names = Array.from({ length: entries }, (_, index) => `${this.#born}.${index}`);
    this.#commits.push({ id: `${1_000 + this.#born}-0`, names });
  }

  trim(commits: number): void {
    this.#trimmed = Math.min(this.#commits.length, this.#trimmed + commits);
  }

  rollBack(commits: number): void {
    this.#commits.length = Math.max(0, this.#commits.length - commits);
    this.#trimmed = Math.min(this.#trimmed, this.#commits.length);
  }

  makeAnew(): void {
    this.#epoch += 1;
    this.#commits = [];
    this.#trimmed = 0;
  }

  get tip(): number {
    return this.#commits.length;
  }

  get oldest(): number {
    return this.#trimmed;
  }

  /** Answers how many commits lie before what this token resumes with, or why it cannot be resumed from. */
  resume(text: string): number | 'epoch' | 'ahead' | 'trimmed' | 'forked' {
    const parsed = parseToken(text);
    if (parsed === undefined) throw new Error('the link sent something that is no token');
    const { epoch, ordinal, id } = parsed.fields;
    if (epoch !== this.#epochText()) return 'epoch';
    if (ordinal > this.tip) return 'ahead';
    if (ordinal < this.#trimmed) return 'trimmed';
    return id === this.#idBefore(ordinal) ? ordinal : 'forked';
  }

  /** The entries after so many commits. */
  after(commits: number): PlayedEntry[] {
    return this.#commits.slice(commits).flatMap(({ names }, at) => {
      const generation = commits + at + 1;
      return names.map((name, index) => {
        const isLast = index === names.length - 1;
        const id = this.#idBefore(isLast ? generation : generation - 1);
        const more = { epoch: this.#epochText(), id };
        return {
          token: entryToken(generation, index, names.length, more),
          name,
          generation,
          index,
        };
      });
    });
  }

  #idBefore(ordinal: number): string {
    return this.#commits[ordinal - 1]?.id ?? '0-0';
  }

  #epochText(): string {
    return `AAECAwQFBg${String(this.#epoch).padStart(2, '0')}`;
  }
}
