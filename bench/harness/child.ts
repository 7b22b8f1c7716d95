import { type ChildProcess, fork } from 'node:child_process';
import { fileURLToPath } from 'node:url';

interface Settle {
  resolve(value: unknown): void;
  reject(error: Error): void;
}

/** What a child process sends: its start, or the answer to a call. */
type Message =
  | { readonly ready: unknown }
  | { readonly id: number; readonly value?: unknown; readonly error?: string };

export interface ChildOptions {
  readonly args: readonly string[];
  readonly execArgv: readonly string[];
}

/** A Node process of its own, whose functions are called over its IPC channel. `Api` is what it answers to. */
export class Child<Api extends { [K in keyof Api]: (argument: never) => Promise<unknown> }> {
  readonly #process: ChildProcess;
  readonly #calls = new Map<number, Settle>();
  readonly #exited: Promise<void>;
  /** Rejects when the process ends without being stopped. */
  readonly failed: Promise<never>;
  #stopping = false;
  #lastId = 0;
  #failure: Error | undefined;

  /** Resolves with the child and what it said when it was ready. */
  static async start<Api extends { [K in keyof Api]: (argument: never) => Promise<unknown> }>(
    file: URL,
    options: ChildOptions,
  ): Promise<{ child: Child<Api>; ready: unknown }> {
    const child = new Child<Api>(file, options);
    const ready = await new Promise((resolve, reject) => child.#calls.set(0, { resolve, reject }));
    return { child, ready };
  }

  constructor(file: URL, { args, execArgv }: ChildOptions) {
    this.#process = fork(fileURLToPath(file), args, {
      execArgv: [...execArgv],
      env: { ...process.env, NODE_ENV: 'production', NODE_OPTIONS: '' },
    });
    this.#process.on('message', (message) => this.#receive(message as Message));
    let fail: (error: Error) => void = () => {};
    this.failed = new Promise((_resolve, reject) => {
      fail = reject;
    });
    // Somebody may be waiting for it, or nobody.
    this.failed.catch(() => {});
    this.#exited = new Promise((resolve) => {
      this.#process.on('exit', (code, signal) => {
        this.#failure = new Error(`${file.pathname} ended with ${signal ?? code}`);
        for (const call of this.#calls.values()) call.reject(this.#failure);
        if (!this.#stopping) fail(this.#failure);
        resolve();
      });
    });
  }

  get pid(): number {
    return this.#process.pid as number;
  }

  call<K extends keyof Api & string>(
    name: K,
    ...[argument]: Parameters<Api[K]>
  ): Promise<Awaited<ReturnType<Api[K]>>> {
    return new Promise((resolve, reject) => {
      if (this.#failure !== undefined) return reject(this.#failure);
      this.#lastId += 1;
      // What a call answers is what the child's function of that name does.
      this.#calls.set(this.#lastId, { resolve: resolve as Settle['resolve'], reject });
      this.#process.send({ id: this.#lastId, name, argument });
    });
  }

  /** Lets the process end by itself, and ends it if it does not. */
  async stop(): Promise<void> {
    this.#stopping = true;
    if (this.#process.connected) this.#process.disconnect();
    const late = setTimeout(() => this.#process.kill('SIGKILL'), 5_000);
    await this.#exited;
    clearTimeout(late);
  }

  #receive(message: Message): void {
    const id = 'ready' in message ? 0 : message.id;
    const call = this.#calls.get(id);
    this.#calls.delete(id);
    if ('ready' in message) call?.resolve(message.ready);
    else if (message.error === undefined) call?.resolve(message.value);
    else call?.reject(new Error(message.error));
  }
}
