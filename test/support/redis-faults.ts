import type { Faults } from '@brokerfeed/conformance';
import type { RedisFaultStore } from './redis-fault-store.ts';

const HOUR_MS = 3_600_000;
/** Commits that a rollback takes, and those that a trim leaves. */
const SOME = 6;
const RETAINED = 5;

/** Whoever comes back before the log has grown past the place that it holds is told `ahead`. */
const ROLLED_BACK = ['forked', 'ahead'] as const;

/** The server ends, and comes back: with all, with nothing, or with less. */
export const RESTARTS: Faults<RedisFaultStore> = {
  'the server is killed and comes back with its append-only file': {
    expected: 'invisible',
    async inject(store, scene) {
      await store.keepFile();
      await scene.delivered();
      await store.server.kill();
      await scene.last(1_000);
      await store.server.restart(['--appendonly', 'yes']);
    },
  },
  'the server is killed and comes back empty': {
    expected: ['epoch'],
    async inject({ server }) {
      await server.kill();
      await server.forget();
      await server.restart();
    },
  },
  'the server is killed and comes back with an older dump': {
    expected: ROLLED_BACK,
    told: 'there',
    async inject({ server, admin }, scene) {
      await admin.save();
      await scene.append(SOME);
      await scene.delivered();
      await server.kill();
      await server.restart();
    },
  },
  'the server is killed, comes back with an older dump, and nothing is appended': {
    expected: ROLLED_BACK,
    told: 'there',
    async inject({ server, admin }, scene) {
      await admin.save();
      await scene.append(SOME);
      await scene.delivered();
      await scene.hold();
      await server.kill();
      await server.restart();
      await scene.told();
    },
  },
};

/** Another server becomes the primary. */
export const PROMOTIONS: Faults<RedisFaultStore> = {
  'a replica that has everything is promoted by hand': {
    expected: 'invisible',
    async inject(store, scene) {
      const replica = await store.addReplica();
      await scene.hold();
      await scene.delivered();
      await store.caughtUp(replica);
      await store.server.kill();
      await replica.admin.replicaof('NO', 'ONE');
      store.moveTo(replica);
    },
  },
  'a replica that lacks the newest commits is promoted by hand': {
    expected: ROLLED_BACK,
    told: 'there',
    async inject(store, scene) {
      const replica = await store.addReplica();
      await scene.append(SOME);
      replica.link.halfOpen();
      replica.link.refuse();
      await scene.append(SOME);
      await scene.delivered();
      await store.server.kill();
      await replica.admin.replicaof('NO', 'ONE');
      store.moveTo(replica);
    },
  },
  'the primary becomes a replica of the one that lacks the newest commits': {
    expected: ROLLED_BACK,
    told: 'there',
    async inject(store, scene) {
      const { admin } = store;
      const replica = await store.addReplica();
      await scene.append(SOME);
      replica.link.halfOpen();
      replica.link.refuse();
      await scene.append(SOME);
      await scene.delivered();
      await replica.admin.replicaof('NO', 'ONE');
      // Instances still reach the old one, which refuses to write.
      await admin.replicaof('127.0.0.1', replica.server.port);
      await scene.last(300);
      store.moveTo(replica);
    },
  },
  'the primary becomes a replica, and its instances stay connected to it when it falls behind': {
    expected: ROLLED_BACK,
    told: 'there',
    async inject(store, scene) {
      const { admin } = store;
      const replica = await store.addReplica();
      replica.link.halfOpen();
      replica.link.refuse();
      await scene.append(SOME);
      await scene.delivered();
      await replica.admin.replicaof('NO', 'ONE');
      store.moveTo(replica);
      // It answers reads as ever, and hears of nothing more.
      await admin.replicaof('127.0.0.1', 1);
    },
  },
};

/** The server or the link to it goes silent, and comes back as it was. */
export const SILENCES: Faults<RedisFaultStore> = {
  'the server is frozen': {
    expected: 'invisible',
    async inject({ server }, scene) {
      await server.kill('SIGSTOP');
      await scene.last(1_000);
      await server.kill('SIGCONT');
    },
  },
  'the links are black holes for a while': {
    expected: 'invisible',
    async inject(store, scene) {
      store.eachLink((link) => link.blackHole());
      await scene.last(1_000);
      store.eachLink((link) => link.mend());
    },
  },
  'one instance is cut off while the other appends': {
    expected: 'invisible',
    async inject({ links }, scene) {
      links[1]?.refuse();
      await scene.append(SOME);
      await scene.last(500);
      links[1]?.mend();
    },
  },
  'the links are half open': {
    expected: 'invisible',
    inject: async (store, scene) => {
      store.eachLink((link) => link.halfOpen());
      await scene.append(SOME);
    },
  },
  'the links are reset in the middle of a reply': {
    expected: 'invisible',
    async inject(store, scene) {
      store.eachLink((link) => link.resetInReply());
      await scene.append(SOME);
    },
  },
  'the links are cut again and again': {
    expected: 'invisible',
    async inject(store, scene) {
      for (let n = 0; n < 5; n += 1) {
        store.eachLink((link) => link.cut());
        await scene.append(2);
      }
    },
  },
  'the links are slow': {
    expected: 'invisible',
    async inject(store, scene) {
      store.eachLink((link) => link.delay(50));
      await scene.append(3);
      store.eachLink((link) => link.mend());
    },
  },
};

/** What operators type, and what a server does by itself. */
export const COMMANDS: Faults<RedisFaultStore> = {
  'the connections of the live reads are killed': {
    expected: 'invisible',
    async inject({ admin }, scene) {
      for (let n = 0; n < 3; n += 1) {
        await killReaders(admin);
        await scene.append(2);
      }
    },
  },
  'every client is paused': {
    expected: 'invisible',
    async inject({ admin }, scene) {
      await admin.client('PAUSE', 800, 'ALL');
      await scene.append(2);
    },
  },
  'the scripts are forgotten': {
    expected: 'invisible',
    async inject({ admin }, scene) {
      await admin.script('FLUSH');
      await scene.append(SOME);
    },
  },
  'the topic is deleted': {
    expected: ['epoch'],
    async inject(store, scene) {
      await store.admin.del(store.key(scene.topic));
    },
  },
  'the topic is deleted, and nothing is appended': {
    expected: ['epoch'],
    async inject(store, scene) {
      await scene.hold();
      await scene.delivered();
      await store.admin.del(store.key(scene.topic));
      await scene.told();
    },
  },
  'the topic expires': {
    expected: ['epoch'],
    async inject(store, scene) {
      await scene.hold();
      await scene.delivered();
      await store.admin.pexpire(store.key(scene.topic), 10);
      await scene.told();
    },
  },
  'the topic is evicted': {
    expected: ['epoch'],
    async inject({ admin }, scene) {
      await admin.config('SET', 'maxmemory-policy', 'allkeys-random', 'maxmemory', '1');
      await scene.last(100);
      await admin.config('SET', 'maxmemory', '0');
    },
  },
  'everything is flushed': {
    expected: ['epoch'],
    async inject({ admin }) {
      await admin.flushall();
    },
  },
};

/** Commits are trimmed that somebody has not read. */
export const TRIMS: Faults<RedisFaultStore> = {
  'the topic is trimmed past those who are away': {
    expected: ['trimmed'],
    told: 'missing',
    async inject(store, scene) {
      await scene.append(4 * SOME);
      await scene.delivered();
      await store.admin.xtrim(store.key(scene.topic), 'MAXLEN', '=', RETAINED);
    },
  },
  'a burst of ten times the retention passes by the live reads': {
    expected: ['trimmed'],
    async inject(store, scene) {
      const bursting = store.direct({ retention: { maxEntries: RETAINED, trim: 'exact' } });
      await scene.hold();
      await scene.delivered();
      store.eachLink((link) => link.blackHole());
      await scene.append(10 * RETAINED, bursting);
      store.eachLink((link) => link.mend());
    },
  },
};

/** What takes subscribers that can be paused. */
export const PAUSES: Faults<RedisFaultStore> = {
  'the topic is trimmed past those who are connected and take nothing': {
    expected: ['trimmed'],
    told: 'missing',
    async inject(store, scene) {
      const resume = scene.pause();
      await scene.append(4 * SOME);
      await scene.delivered();
      await store.admin.xtrim(store.key(scene.topic), 'MAXLEN', '=', RETAINED);
      resume();
    },
  },
};

/** What appends and clocks go through. */
export const APPENDS: Faults<RedisFaultStore> = {
  'the reply to an append is lost, and its caller repeats it': {
    expected: 'invisible',
    async inject({ links }, scene) {
      for (let n = 0; n < 3; n += 1) {
        // The appender's values are in the request, and nowhere else.
        await Promise.all(links.slice(0, 1).map((link) => link.loseReply(isAppend)));
        await scene.append(1);
      }
    },
  },
  'the clocks of the instances are wrong by hours': {
    expected: 'invisible',
    async inject(store, scene) {
      for (const hours of [5, -5, 0]) {
        store.skew(hours * HOUR_MS);
        await scene.append(4);
      }
    },
  },
};

function isAppend(request: Buffer): boolean {
  return request.includes('"n":');
}

/** Kills what a live read listens on, whichever way it listens. */
async function killReaders(admin: RedisFaultStore['admin']): Promise<void> {
  const list = String(await admin.client('LIST'));
  for (const line of list.split('\n')) {
    const id = / name=brokerfeed-reader /.test(line) && /^id=(\d+)/.exec(line)?.[1];
    if (id) await admin.client('KILL', 'ID', id);
  }
  await admin.call('CLIENT', 'KILL', 'TYPE', 'pubsub');
}
