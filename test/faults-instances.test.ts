import { FaultWorld } from '@brokerfeed/conformance';
import { expect, test } from 'vitest';
import { startFleet } from './support/fault-fleet.ts';
import { FleetProcess } from './support/fault-process.ts';
import { RedisFaultStore } from './support/redis-fault-store.ts';

const CONNECTIONS = 1_000;
const TIMEOUT_MS = 120_000;
/** Each append is a thousand deliveries to stock clients in this process. */
const APPEND_EVERY_MS = 250;

test(
  'an instance is killed and started again under a thousand connections, and nobody notices',
  async () => {
    await using store = await RedisFaultStore.start();
    await using broker = await store.open();
    const topic = 'orders';
    const options = { redisPort: store.server.port, prefix: store.prefix, topic };
    await using first = await FleetProcess.start(options);
    await using second = await FleetProcess.start(options);
    await using fleet = await startFleet(() => [first, second], CONNECTIONS);
    await using world = new FaultWorld(
      { topic, appender: broker, everyMs: APPEND_EVERY_MS, deadlineMs: TIMEOUT_MS / 2 },
      fleet.subscribers,
    );
    await world.start();
    await world.run(
      {
        expected: 'invisible',
        async inject(_, scene) {
          await first.kill('SIGKILL');
          await scene.append(3);
          await scene.delivered();
          await first.restart();
          await second.kill('SIGKILL');
          await scene.append(3);
        },
      },
      store,
    );
    const { lost, repeated, failed, problems } = world.ledger;
    expect({ lost, repeated, failed, problems }).toEqual({
      lost: 0,
      repeated: 0,
      failed: 0,
      problems: [],
    });
  },
  TIMEOUT_MS,
);
