/** Less than a test has, so that it is this which fails and says what was not seen. */
const TIMEOUT_MS = 15_000;

/** Wakes whoever waits for a condition: tests wait for what they can see, never for time. */
export class Moments {
  readonly #looks = new Set<() => void>();

  tell(): void {
    for (const look of [...this.#looks]) look();
  }

  /** Resolves once the condition holds. Rejects after a while with what `describe` says. */
  until(condition: () => boolean, describe: () => string): Promise<void> {
    return new Promise((resolve, reject) => {
      const settle = (act: () => void): void => {
        clearTimeout(timer);
        this.#looks.delete(look);
        act();
      };
      const look = (): void => {
        if (condition()) settle(resolve);
      };
      const timer = setTimeout(() => settle(() => reject(new Error(describe()))), TIMEOUT_MS);
      this.#looks.add(look);
      look();
    });
  }
}
