// The server process of a run: one system, started by name, and a few questions over IPC (harness/server-api.ts).
import { EventEmitter } from 'node:events';
import { monitorEventLoopDelay, PerformanceObserver } from 'node:perf_hooks';

const [name, redisUrl, options] = process.argv.slice(2);
// A thousand subscribers on one emitter are what is measured here.
EventEmitter.defaultMaxListeners = 0;

/** How often the event loop is looked at, in milliseconds: it is added to every gap that is seen. */
const RESOLUTION_MS = 1;

const pauses = monitorEventLoopDelay({ resolution: RESOLUTION_MS });
let gcMs = 0;

const api = {
  async memory() {
    // Finalizers run between: what they free goes with the second.
    globalThis.gc?.();
    await new Promise((resolve) => setTimeout(resolve, 200));
    globalThis.gc?.();
    const { heapUsed, external } = process.memoryUsage();
    return heapUsed + external;
  },
  async watchPauses() {
    new PerformanceObserver((list) => {
      for (const { duration } of list.getEntries()) gcMs = Math.max(gcMs, duration);
    }).observe({ entryTypes: ['gc'] });
    pauses.enable();
    pauses.reset();
  },
  async longestPause() {
    return { pauseMs: pauses.max / 1e6 - RESOLUTION_MS, gcMs };
  },
};

async function answer({ id, name: question, argument }) {
  try {
    process.send({ id, value: await api[question](argument) });
  } catch (error) {
    process.send({ id, error: String(error?.stack ?? error) });
  }
}

process.on('message', (message) => void answer(message));
process.on('disconnect', () => process.exit(0));
process.on('unhandledRejection', (error) => console.error(`${name}: unhandled`, error));

const { system } = await import(`./systems/${name}.mjs`);
process.send({ ready: await system.start(redisUrl, JSON.parse(options)) });
