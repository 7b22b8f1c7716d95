import { type FaultStore, testFaults } from '@brokerfeed/conformance';
import { redisBroker } from '@brokerfeed/redis';
import { afterAll, beforeAll, expect, test } from 'vitest';
import {
  type ClusterNode,
  type RedisCluster,
  SlotMove,
  startCluster,
} from '../../../test/support/redis-cluster.ts';
import { keySlot } from '../src/key-slot.ts';
import { at, eventually } from './support.ts';
import { TopicLedger } from './topic-ledger.ts';

/** Enough to have some on every server, many times over. */
const TOPICS = 50;
/** Longer than a failover takes, on a slow machine too. */
const PATIENCE_MS = 45_000;

let cluster: RedisCluster;

beforeAll(async () => {
  cluster = await startCluster({ replicas: 1, nodeTimeoutMs: 1_500 });
});

afterAll(async () => {
  await cluster[Symbol.asyncDispose]();
});

test('a replica shows the way into the cluster as well', async () => {
  const { replica } = await pair();
  const client = cluster.client({}, [replica.server.port]);
  await using broker = redisBroker({ client });
  expect((await broker.log.append('t', 'a')).ordinal).toBe(1);
});

test('slots that move in mid-stream are noticed by nobody', async () => {
  // While its slot moves, there is no server that would take an append with an idempotency key.
  await using run = await startRun({ keyed: false });
  const [first, second, third] = cluster.nodes as [ClusterNode, ClusterNode, ClusterNode];
  // Every topic of one server, in turn.
  const slots = run.slots.filter((slot) => slot < 16384 / 3);
  expect(slots.length).toBeGreaterThan(5);
  for (const [index, slot] of slots.entries()) {
    const move = new SlotMove(slot, first, index % 2 === 0 ? second : third);
    await move.begin();
    await run.ledger.goesOn(2);
    await move.moveKeys();
    await run.ledger.goesOn(2);
    await move.finish();
  }
  await run.ledger.goesOn(TOPICS);
  expect(await run.ledger.problems()).toEqual([]);
  expect(run.ledger.told).toBe(0);
});

test('a primary that hands over to its replica in mid-stream is noticed by nobody', async () => {
  await using run = await startRun({ keyed: true });
  const { primary, replica } = await pair();
  await run.ledger.goesOn(TOPICS);
  await replica.client.call('CLUSTER', 'FAILOVER');
  await takesOver(replica, primary);
  await run.ledger.goesOn(TOPICS);
  expect(await run.ledger.problems()).toEqual([]);
  expect(run.ledger.told).toBe(0);
});

test('a primary that dies in mid-stream is replaced, and what its replica lacks is told', async () => {
  await using run = await startRun({ keyed: true });
  await run.ledger.goesOn(TOPICS);
  await replacePrimary(() => run.ledger.goesOn(2 * TOPICS));
  await run.ledger.goesOn(TOPICS);
  expect(await run.ledger.problems()).toEqual([]);
  expect(run.ledger.told).toBeGreaterThan(0);
});

testFaults<ClusterStore>('faults of a cluster', startStore, {
  'the slot of a topic moves to another server': {
    expected: 'invisible',
    async inject({ slot }, scene) {
      const { primary } = await pair();
      const move = new SlotMove(slot, primary, at(cluster.nodes, 1));
      await move.begin();
      await move.moveKeys();
      await scene.last(100);
      await move.finish();
    },
  },
  "the primary of a topic dies, and its replica lacks the topic's newest commits": {
    expected: ['forked', 'ahead'],
    told: 'there',
    async inject(_, scene) {
      await replacePrimary(async () => {
        await scene.append(6);
        await scene.delivered();
      });
    },
  },
});

/** Topics of one slot, which the server with the replica holds. */
interface ClusterStore extends FaultStore {
  readonly slot: number;
}

async function startStore(): Promise<ClusterStore> {
  const { primary } = await pair();
  for (let n = 0; ; n++) {
    const slot = keySlot(`${n}`);
    if ((await cluster.primaryOf(slot, primary)) !== primary) continue;
    const prefix = `{${n}}${crypto.randomUUID()}`;
    return {
      slot,
      open: async () =>
        redisBroker({
          client: cluster.client(),
          prefix,
          checkMs: 200,
          retryMs: PATIENCE_MS,
        }),
      [Symbol.asyncDispose]: async () => {},
    };
  }
}

/** Topics under way on the cluster. */
async function startRun({ keyed }: { readonly keyed: boolean }) {
  const prefix = `run-${crypto.randomUUID()}`;
  const client = cluster.client();
  const broker = redisBroker({ client, prefix, checkMs: 1_000, retryMs: PATIENCE_MS });
  const topics = Array.from({ length: TOPICS }, (_, n) => `${n}`);
  const ledger = new TopicLedger(broker.log, topics, (topic, value) =>
    broker.log.append(topic, value, keyed ? { idempotencyKey: value } : {}),
  );
  await ledger.start();
  return {
    ledger,
    slots: topics.map((topic) => keySlot(`${prefix}:${topic}`)),
    async [Symbol.asyncDispose]() {
      await ledger[Symbol.asyncDispose]();
      await broker.close();
    },
  };
}

/** The server that has a replica, and that, when it follows. */
async function pair(): Promise<{ primary: ClusterNode; replica: ClusterNode }> {
  const nodes = [at(cluster.nodes, 0), at(cluster.nodes, -1)];
  return await eventually(async () => {
    const roles = await Promise.all(nodes.map(({ client }) => client.info('replication')));
    const primary = nodes[roles.findIndex((role) => role.includes('role:master'))];
    const replica = nodes[roles.findIndex((role) => role.includes('master_link_status:up'))];
    return primary && replica && { primary, replica };
  });
}

/** Lets a primary die with what it is given meanwhile, and come back as the replica of the one that takes over. */
async function replacePrimary(write: () => Promise<void>): Promise<void> {
  const { primary, replica } = await pair();
  const written = await offsetOf(primary);
  await eventually(async () => (await offsetOf(replica)) >= written);
  await replica.server.kill('SIGSTOP');
  // What is sent to a stopped process waits for it in its socket.
  await primary.client.call('CLIENT', 'KILL', 'TYPE', 'replica');
  await write();
  await primary.server.kill('SIGKILL');
  await replica.server.kill('SIGCONT');
  await takesOver(replica, at(cluster.nodes, 1));
  await primary.server.restart();
}

/** How much of the log of all writes a node has. */
async function offsetOf({ client }: ClusterNode): Promise<number> {
  const info = await client.info('replication');
  return Number(/^(?:slave|master)_repl_offset:(\d+)/m.exec(info)?.[1]);
}

/** Waits until a node sees another take over. */
async function takesOver(replica: ClusterNode, seenBy: ClusterNode): Promise<void> {
  const deadline = Date.now() + PATIENCE_MS;
  while ((await cluster.primaryOf(0, seenBy)) !== replica) {
    if (Date.now() > deadline) throw new Error('the replica does not take over');
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}
