import { FaultWorld } from '@brokerfeed/conformance';
import { expect, test } from 'vitest';
import { startFleet } from './support/fault-fleet.ts';
import { FleetProcess } from './support/fault-process.ts';
import { RedisFaultStore } from './support/redis-fault-store.ts';
import { SOAK } from './support/soak.ts';

/** A thousand where there is time for them: they are stock clients, and all in this process. */
const CONNECTIONS = SOAK > 1 ? 1_000 : 400;
const TIMEOUT_MS = 120_000;
/** Each append is a delivery to each of them. */
const APPEND_EVERY_MS = 250;

test(
  `an instance is killed and started again under ${CONNECTIONS} connections, and nobody notices`,
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
