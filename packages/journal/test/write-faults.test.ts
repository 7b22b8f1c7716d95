import { describe, expect, test } from 'vitest';
import { openOn, withoutLock } from './crash-history.ts';
import { DiskModel } from './disk-model.ts';
import { quickDisk, RecordedFs, systemError } from './recorded-fs.ts';

const UNAVAILABLE = { name: 'BrokerError', code: 'UNAVAILABLE' };

/** What a process that is killed now leaves behind. */
function killed(fs: RecordedFs): RecordedFs {
  const disk = new DiskModel();
  for (const op of fs.ops) disk.apply(op);
  return new RecordedFs(withoutLock(disk.files('killed')));
}

async function valuesOf(
  { log }: ReturnType<typeof openOn>,
  topic: string,
): Promise<(string | undefined)[]> {
  const page = await log.page(topic, 'earliest', 1000);
  return page.verdict === 'ok' ? page.commits.map(({ entries }) => entries[0]?.value) : [];
}

test.each([
  [
    'no space',
    () => {
      throw systemError('ENOSPC');
    },
  ],
  ['a short write', (bytes: Uint8Array) => bytes.length - 1],
  ['a write of nothing', () => 0],
])(
  'an append that meets %s is rejected, leaves nothing, and the next one succeeds',
  async (_, fault) => {
    const fs = new RecordedFs();
    await using broker = openOn(fs);
    const { log } = broker;
    await log.append('a', 'before');
    fs.faults.write = fault;
    await expect(log.append('a', 'lost')).rejects.toMatchObject(UNAVAILABLE);
    await expect(log.appendAll([{ topic: 'b', value: 'lost' }])).rejects.toMatchObject(UNAVAILABLE);
    delete fs.faults.write;
    expect((await log.append('a', 'after')).ordinal).toBe(2);
    expect(await valuesOf(broker, 'a')).toEqual(['before', 'after']);
    await using again = openOn(killed(fs));
    expect(await valuesOf(again, 'a')).toEqual(['before', 'after']);
    expect(await valuesOf(again, 'b')).toEqual([]);
  },
);

test('the first append of a folder may fail for want of space too', async () => {
  const fs = new RecordedFs();
  await using broker = openOn(fs);
  fs.faults.write = () => 10;
  await expect(broker.log.append('a', 'lost')).rejects.toMatchObject(UNAVAILABLE);
  delete fs.faults.write;
  expect((await broker.log.append('a', 'after')).ordinal).toBe(1);
  expect(await valuesOf(broker, 'a')).toEqual(['after']);
});

test('a failed append frees its idempotency key', async () => {
  const fs = new RecordedFs();
  await using broker = openOn(fs);
  fs.faults.write = () => 0;
  const options = { idempotencyKey: 'k' };
  await expect(broker.log.append('a', 'x', options)).rejects.toMatchObject(UNAVAILABLE);
  delete fs.faults.write;
  expect((await broker.log.append('a', 'x', options)).ordinal).toBe(1);
  expect((await broker.log.append('a', 'x', options)).ordinal).toBe(1);
});

test('after a failed fdatasync every append is refused, reads go on, and opening anew recovers', async () => {
  const fs = new RecordedFs();
  const broker = openOn(fs);
  const { log } = broker;
  await log.append('a', 'before');
  let fails = 1;
  fs.faults.sync = () => {
    fails -= 1;
    if (fails === 0) throw systemError('EIO');
  };
  await expect(log.append('a', 'lost')).rejects.toMatchObject(UNAVAILABLE);
  // The next fdatasync would succeed, and mean nothing.
  await expect(log.append('a', 'refused')).rejects.toMatchObject(UNAVAILABLE);
  expect(await valuesOf(broker, 'a')).toEqual(['before']);
  await broker.close();
  await using again = openOn(killed(fs));
  expect(await valuesOf(again, 'a')).toEqual(['before']);
  expect((await again.log.append('a', 'after')).ordinal).toBe(2);
});

test('where a failed write cannot be cut off, the journal is broken until it is opened anew', async () => {
  const fs = new RecordedFs();
  const broker = openOn(fs);
  await broker.log.append('a', 'before');
  fs.faults.write = (bytes) => bytes.length - 5;
  fs.faults.truncate = () => {
    throw systemError('EIO');
  };
  await expect(broker.log.append('a', 'lost')).rejects.toMatchObject(UNAVAILABLE);
  delete fs.faults.write;
  await expect(broker.log.append('a', 'refused')).rejects.toMatchObject(UNAVAILABLE);
  await using again = openOn(killed(fs));
  expect(await valuesOf(again, 'a')).toEqual(['before']);
});

test('what was written and never proven is written again before it is served', async () => {
  const fs = new RecordedFs();
  const broker = openOn(fs);
  await broker.log.append('a', 'before');
  fs.faults.sync = () => {
    throw systemError('EIO');
  };
  fs.faults.truncate = () => {
    throw systemError('EIO');
  };
  await expect(broker.log.append('a', 'unproven')).rejects.toMatchObject(UNAVAILABLE);
  const left = killed(fs);
  const before = left.ops.length;
  await using again = openOn(left);
  expect(await valuesOf(again, 'a')).toEqual(['before', 'unproven']);
  const rewrites = left.ops.slice(before).filter((op) => op.op === 'write' && op.at > 0);
  expect(rewrites.map((op) => op.op === 'write' && op.bytes.includes('unproven'))).toEqual([true]);
});

test('readers see a commit only after it is durable', async () => {
  const fs = new RecordedFs();
  await using broker = openOn(fs);
  const { log } = broker;
  const { last } = await log.bounds('a');
  const seen: string[] = [];
  const reading = new AbortController();
  const sink = {
    live: () => {},
    commits: (commits: readonly { entries: readonly { value: string }[] }[]) => {
      for (const { entries } of commits) seen.push(entries[0]?.value ?? '');
    },
  };
  const followed = log.follow('a', last, sink, reading.signal);
  let release = (): void => {};
  const reached = new Promise<void>((resolve) => {
    fs.beforeSync = () => {
      resolve();
      return new Promise((go) => {
        release = go;
      });
    };
  });
  const appending = log.append('a', 'x');
  await reached;
  expect(seen).toEqual([]);
  expect(await valuesOf(broker, 'a')).toEqual([]);
  expect((await log.bounds('a')).last.ordinal).toBe(0);
  fs.beforeSync = async () => {};
  release();
  await appending;
  expect(await valuesOf(broker, 'a')).toEqual(['x']);
  reading.abort();
  await followed;
  expect(seen).toEqual(['x']);
});

test('appends that arrive during an fdatasync share the next one', async () => {
  const fs = new RecordedFs();
  await using broker = openOn(fs);
  const { log } = broker;
  await log.append('a', 'first');
  const waiting: (() => void)[] = [];
  let reached = (): void => {};
  const firstSync = new Promise<void>((resolve) => {
    reached = resolve;
  });
  fs.beforeSync = () => {
    reached();
    return new Promise((go) => {
      waiting.push(go);
    });
  };
  const before = syncs(fs);
  const leading = log.append('a', 'leads');
  await firstSync;
  const late = Array.from({ length: 100 }, (_, index) => log.append('a', `late ${index}`));
  fs.beforeSync = async () => {};
  for (const go of waiting) go();
  await Promise.all([leading, ...late]);
  expect(syncs(fs) - before).toBe(2);
});

describe('the groups of many producers', () => {
  const PRODUCERS = 120;

  /** Appends from many at once until each has met a failure or made its rounds. Answers what was acknowledged. */
  async function produce(fs: RecordedFs, broker: ReturnType<typeof openOn>): Promise<string[]> {
    const acknowledged: string[] = [];
    fs.beforeSync = quickDisk;
    await Promise.all(
      Array.from({ length: PRODUCERS }, async (_, producer) => {
        for (let round = 0; round < 8; round += 1) {
          const value = `${producer}-${round}`;
          const ok = await broker.log.append('a', value).then(
            () => true,
            () => false,
          );
          if (ok) acknowledged.push(value);
        }
      }),
    );
    return acknowledged;
  }

  test.each([1, 2, 3, 5, 8])(
    'keep their order, and lose nothing acknowledged, where write %i fails',
    async (nth) => {
      const fs = new RecordedFs();
      await using broker = openOn(fs);
      let writes = 0;
      fs.faults.write = (bytes) => {
        writes += 1;
        return writes % (nth + 3) === nth ? bytes.length - 7 : bytes.length;
      };
      const acknowledged = await produce(fs, broker);
      expect(await allValues(broker)).toEqual(acknowledged);
      await using again = openOn(killed(fs));
      expect(await allValues(again)).toEqual(acknowledged);
    },
  );

  test.each([2, 3, 4, 6])(
    'all end where sync %i fails, and what was acknowledged is served and recovered',
    async (nth) => {
      const fs = new RecordedFs();
      const broker = openOn(fs);
      let syncings = 0;
      fs.faults.sync = () => {
        syncings += 1;
        if (syncings === nth) throw systemError('EIO');
      };
      const acknowledged = await produce(fs, broker);
      expect(acknowledged.length).toBeLessThan(PRODUCERS * 8);
      expect(await allValues(broker)).toEqual(acknowledged);
      await broker.close();
      await using again = openOn(killed(fs));
      expect(await allValues(again)).toEqual(acknowledged);
    },
  );
});

async function allValues({ log }: ReturnType<typeof openOn>): Promise<string[]> {
  const page = await log.page('a', 'earliest', 10_000);
  return page.verdict === 'ok' ? page.commits.map(({ entries }) => entries[0]?.value ?? '') : [];
}

function syncs(fs: RecordedFs): number {
  return fs.ops.filter((op) => op.op === 'sync').length;
}
