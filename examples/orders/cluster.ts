import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { freePort } from './free-port.ts';

export interface ClusterOptions {
  /** The environment of every instance: which broker, which folder; and `ORDERS_INSTANCE`, another script than that beside us. */
  readonly env: NodeJS.ProcessEnv;
  /** Told what happens, a line at a time. */
  readonly log: (line: string) => void;
  /**
   * How long a killed instance stays away, in milliseconds.
   * @default 500
   */
  readonly restartMs?: number;
}

/** An instance of the service, and the processes that were and will be it. */
export interface Instance {
  readonly name: string;
  readonly port: number;
  /** Whether it takes connections now. */
  readonly live: boolean;
  /** Ends its process as a crash would. Resolves when that is gone; another one follows. */
  kill(): Promise<void>;
  /** Ends its process as a deploy does: it moves its clients first. Resolves when it is gone; another one follows. */
  replace(): Promise<void>;
}

const SCRIPT = fileURLToPath(new URL('instance.ts', import.meta.url));
const STOP_MS = 3_000;

/** Instances of the service in processes of their own, each started again when it ends. */
export class Cluster {
  readonly #options: ClusterOptions;
  readonly #instances: Supervised[] = [];

  constructor(options: ClusterOptions) {
    this.#options = options;
  }

  get instances(): readonly Instance[] {
    return this.#instances;
  }

  /** Starts one more instance, on a free port unless one is named. Resolves when it takes connections. */
  async add(port?: number): Promise<Instance> {
    const chosen = port ?? (await freePort());
    const name = `instance ${this.#instances.length + 1}`;
    const instance = new Supervised(name, chosen, this.#options);
    this.#instances.push(instance);
    await instance.start();
    return instance;
  }

  /** Ends every instance, and waits until it has. */
  async close(): Promise<void> {
    await Promise.all(this.#instances.map((instance) => instance.close()));
  }
}

class Supervised implements Instance {
  readonly name: string;
  readonly port: number;
  readonly #options: ClusterOptions;
  #child: ChildProcess | undefined;
  #restart: NodeJS.Timeout | undefined;
  #phase: 'down' | 'live' | 'leaving' | 'closed' = 'down';

  constructor(name: string, port: number, options: ClusterOptions) {
    this.name = name;
    this.port = port;
    this.#options = options;
  }

  get live(): boolean {
    return this.#phase === 'live';
  }

  async start(): Promise<void> {
    const { env } = this.#options;
    // Under tsx its loader is in our own arguments, and `fork` hands those on.
    const child = fork(env.ORDERS_INSTANCE ?? SCRIPT, {
      env: { ...env, PORT: String(this.port), INSTANCE: this.name },
    });
    this.#child = child;
    const exited = once(child, 'exit');
    const listening = once(child, 'message').then(() => true);
    const started = await Promise.race([listening, exited.then(() => false)]);
    if (!started) throw new Error(`${this.name} ended before it listened on port ${this.port}`);
    if (this.#phase === 'closed') return;
    this.#phase = 'live';
    child.once('message', () => {
      if (this.#phase === 'live') this.#phase = 'leaving';
    });
    this.#options.log(`${this.name} is live on port ${this.port}`);
    void exited.then(([code, signal]) => this.#onExit(signal ?? `code ${code}`));
  }

  kill(): Promise<void> {
    return this.#signal('SIGKILL');
  }

  replace(): Promise<void> {
    return this.#signal('SIGTERM');
  }

  async close(): Promise<void> {
    this.#phase = 'closed';
    clearTimeout(this.#restart);
    const child = this.#child;
    if (child === undefined || hasExited(child)) return;
    const exited = once(child, 'exit');
    const timer = setTimeout(() => child.kill('SIGKILL'), STOP_MS);
    // The sign to stop, and the same one that our own death would be.
    if (child.connected) child.disconnect();
    await exited;
    clearTimeout(timer);
  }

  async #signal(signal: NodeJS.Signals): Promise<void> {
    if (this.#child === undefined || hasExited(this.#child)) return;
    const exited = once(this.#child, 'exit');
    this.#child.kill(signal);
    await exited;
  }

  #onExit(how: string): void {
    if (this.#phase === 'closed') return;
    this.#phase = 'down';
    this.#options.log(`${this.name} ended (${how}), and is started again`);
    this.#scheduleStart();
  }

  #scheduleStart(): void {
    this.#restart = setTimeout(() => {
      this.start().catch((error: Error) => {
        if (this.#phase === 'closed') return;
        this.#options.log(error.message);
        this.#scheduleStart();
      });
    }, this.#options.restartMs ?? 500);
  }
}

function hasExited(child: ChildProcess): boolean {
  // No pid: it never started.
  return child.pid === undefined || child.exitCode !== null || child.signalCode !== null;
}
