/**
 * The graph, on a journal in `.data`, or on the Redis of `REDIS_URL`.
 *
 *   --port N    where to listen. Default: 3100
 */
import { parseArgs } from 'node:util';
import { openBroker } from './broker.ts';
import { GraphStore } from './graph-store.ts';
import { TOPIC } from './router.ts';
import { seed } from './seed.ts';
import { startServer } from './server.ts';

const { env } = process;
const { values: flags } = parseArgs({ options: { port: { type: 'string', default: '3100' } } });

const broker = openBroker(env);
const store = await GraphStore.open(broker, TOPIC, (error) => {
  // What is in the log is right, and the next process begins with it. Pages come back to that one, and go on.
  console.error(error);
  process.exit(1);
});
await seed(store);
const secret = env.FEED_SECRET ?? 'good enough for a demo on this machine';
const server = await startServer({ broker, store, secret }, Number(flags.port));
console.log(`The graph is at http://127.0.0.1:${server.port}, on the ${broker.name} broker.`);
console.log(`It has ${store.generation} commits. Open it twice, and change it.`);

// Each in the order of its commit: the same that the pages get.
store.changes.onChange(({ generation, index, kind, op }) => {
  console.log(`${generation}.${index} ${kind} ${op}`);
});

let leaving = false;
for (const signal of ['SIGINT', 'SIGTERM'] as const) {
  process.on(signal, () => {
    if (leaving) return;
    leaving = true;
    void server.close().finally(() => process.exit());
  });
}
