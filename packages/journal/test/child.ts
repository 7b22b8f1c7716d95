import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { bundled } from '../../../test/support/bundle.ts';

/** A process of ours that prints lines and can be killed. */
export interface Child extends AsyncDisposable {
  readonly process: ChildProcess;
  /** Every line that it has printed. */
  readonly lines: string[];
  /** Resolves with the first line that begins so. Rejects where the process ends before. */
  line(prefix: string): Promise<string>;
  /** Ends it at once, as a power cut would, and waits until it is gone. */
  kill(): Promise<void>;
}

/** Starts a script of this folder. */
export function startChild(script: string, ...args: readonly string[]): Child {
  const path = bundled(new URL(script, import.meta.url));
  const child = spawn(process.execPath, [path, ...args], {
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  const exited = once(child, 'exit');
  const lines: string[] = [];
  const waiting = new Set<() => void>();
  const reader = createInterface({ input: child.stdout });
  reader.on('line', (line) => {
    lines.push(line);
    for (const look of [...waiting]) look();
  });
  const closed = once(reader, 'close');
  const kill = async (): Promise<void> => {
    child.kill('SIGKILL');
    await Promise.all([exited, closed]);
  };
  return {
    process: child,
    lines,
    line(prefix) {
      return new Promise((resolve, reject) => {
        const look = (): void => {
          const found = lines.find((line) => line.startsWith(prefix));
          if (found === undefined) return;
          waiting.delete(look);
          resolve(found);
        };
        waiting.add(look);
        closed.then(
          () => reject(new Error(`the process ended before it printed "${prefix}"`)),
          reject,
        );
        look();
      });
    },
    kill,
    async [Symbol.asyncDispose]() {
      if (child.exitCode === null && child.signalCode === null) await kill();
    },
  };
}
