/**
 * One instance of the service, as a process of its own. It listens on `PORT`, tells its parent once it does, and ends when
 * the parent is gone, however that came about. On SIGTERM it tells its parent that it leaves, and moves its clients first.
 */
import { type Broker, isBrokerError } from '@brokerfeed/core';
import { brokerKind, dataDir, openBroker } from './broker.ts';
import { OrderStore } from './order-store.ts';
import { startServer } from './server.ts';

const { env } = process;

const server = await startServer({
  broker: open(),
  store: new OrderStore(dataDir(env)),
  secret: env.FEED_SECRET ?? 'good enough for a demo on this machine',
  port: Number(env.PORT ?? 0),
});

/** Opens the broker, or ends: a journal belongs to one process, and another demo may be running. */
function open(): Broker {
  try {
    return openBroker(env);
  } catch (error) {
    if (!isBrokerError(error, 'UNAVAILABLE')) throw error;
    console.error(error.message);
    process.exit(1);
  }
}

const STOP_MS = 2_000;
/** How clients are moved. Long enough for a balancer to notice, and together shorter than what a platform allows. */
const DRAIN = {
  overMs: Number(env.ORDERS_DRAIN_MS ?? 5_000),
  graceMs: Number(env.ORDERS_GRACE_MS ?? 5_000),
};
let leaving = false;
let stopping = false;

/** Ends after the clients have moved; at once where there is no other server for them. */
async function leave(): Promise<void> {
  if (leaving) return;
  leaving = true;
  process.send?.('leaving');
  if (brokerKind(env) === 'redis') await server.drain(DRAIN);
  stop();
}

function stop(): void {
  if (stopping) return;
  stopping = true;
  // Whatever still hangs, such as a Redis that does not answer, does not keep the process.
  setTimeout(() => process.exit(0), STOP_MS);
  void server.close().finally(() => process.exit(0));
}

process.on('SIGTERM', () => void leave());
if (process.send === undefined) {
  process.on('SIGINT', stop);
  console.log(`http://127.0.0.1:${server.port}`);
} else {
  // Ctrl-C reaches the whole group of processes; the parent then ends us in its own order.
  process.on('SIGINT', () => {});
  process.on('disconnect', stop);
  // The parent may have gone before anybody listened.
  if (process.connected) process.send('listening');
  else stop();
}
