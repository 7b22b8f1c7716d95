/** A place where code under test waits until the test lets it go on. */
export interface Gate {
  /** What the code under test awaits. Open, it does not wait. */
  pass(): Promise<void>;
  /** From now on whoever passes waits. */
  close(): void;
  open(): void;
  /** Resolves once somebody waits. */
  readonly reached: Promise<void>;
}

/** Makes a gate, open at first. */
export function gate(): Gate {
  let shut: Promise<void> | undefined;
  let open = (): void => {};
  let tellReached = (): void => {};
  const reached = new Promise<void>((resolve) => {
    tellReached = resolve;
  });
  return {
    async pass() {
      if (shut === undefined) return;
      tellReached();
      await shut;
    },
    close() {
      shut = new Promise((resolve) => {
        open = resolve;
      });
    },
    open() {
      shut = undefined;
      open();
    },
    reached,
  };
}
