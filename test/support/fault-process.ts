import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import type { RedisBrokerOptions } from '@brokerfeed/redis';
import { bundled } from './bundle.ts';
import type { FleetServer } from './fault-fleet.ts';

export interface FleetProcessOptions {
  readonly redisPort: number;
  readonly prefix: string;
  readonly topic: string;
  /** @default the broker's own */
  readonly broker?: Partial<RedisBrokerOptions>;
}

const SCRIPT = new URL('fault-instance.ts', import.meta.url);

/** An instance of a fault run in a process that can be ended. */
export class FleetProcess implements FleetServer {
  readonly #options: FleetProcessOptions;
  #child: ChildProcess | undefined;
  #port = 0;
  #live = false;

  private constructor(options: FleetProcessOptions) {
    this.#options = options;
  }

  static async start(options: FleetProcessOptions): Promise<FleetProcess> {
    const instance = new FleetProcess(options);
    await instance.restart();
    return instance;
  }

  get port(): number {
    return this.#port;
  }

  get live(): boolean {
    return this.#live;
  }

  /** Ends the process with a signal. Resolves when it is gone. */
  async kill(signal: NodeJS.Signals = 'SIGKILL'): Promise<void> {
    const child = this.#child;
    if (child === undefined) return;
    this.#child = undefined;
    const exited = once(child, 'exit');
    child.kill(signal);
    await exited;
    this.#live = false;
  }

  /** Starts a process on the port that the one before had. Resolves when it takes connections. */
  async restart(): Promise<void> {
    const { redisPort, prefix, topic, broker = {} } = this.#options;
    const args = [String(redisPort), prefix, topic, String(this.#port), JSON.stringify(broker)];
    const child = fork(bundled(SCRIPT), args, { execArgv: [] });
    this.#child = child;
    const started = once(child, 'message') as Promise<[number]>;
    const ended = once(child, 'exit').then(() => undefined);
    const message = await Promise.race([started, ended]);
    if (message === undefined) throw new Error('the instance ended before it listened');
    [this.#port] = message;
    this.#live = true;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.kill();
  }
}
