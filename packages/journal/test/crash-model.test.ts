import { expect, test } from 'vitest';
import { checkRecovered, openOn, recordHistory, TOPICS, withoutLock } from './crash-history.ts';
import { CRASHES, DiskModel } from './disk-model.ts';
import { RecordedFs } from './recorded-fs.ts';

const SMALL = { segmentBytes: 4096 };

test.each(CRASHES)('synced commits survive a crash at every operation: %s', async (crash) => {
  const history = await recordHistory(SMALL);
  for (let cut = 0; cut <= history.ops.length; cut += 1) {
    await checkRecovered(history, history.filesAfter(cut, crash), cut, 'all acknowledged', SMALL);
  }
});

test.each(CRASHES)(
  'synced commits of many producers survive a crash at every operation: %s',
  async (crash) => {
    const history = await recordHistory({}, 1, 100);
    const { ops } = history;
    for (let cut = 0; cut <= ops.length; cut += 1) {
      await checkRecovered(history, history.filesAfter(cut, crash), cut, 'all acknowledged');
    }
  },
);

test.each(CRASHES)(
  'synced commits survive a crash at every byte of the last write: %s',
  async (crash) => {
    const history = await recordHistory(SMALL, 2);
    const cut = history.ops.findLastIndex((op) => op.op === 'write');
    const write = history.ops[cut];
    if (write?.op !== 'write') return expect.fail('the history ends without a write');
    for (let bytes = 0; bytes <= write.bytes.length; bytes += 1) {
      const files = history.filesAfter(cut, crash, bytes);
      await checkRecovered(history, files, cut, 'all acknowledged', SMALL);
    }
  },
);

test.each(['interval', 'never'] as const)(
  'fsync "%s" loses nothing when the process is killed',
  async (fsync) => {
    const options = { ...SMALL, fsync };
    const history = await recordHistory(options);
    for (let cut = 0; cut <= history.ops.length; cut += 1) {
      await checkRecovered(
        history,
        history.filesAfter(cut, 'killed'),
        cut,
        'all acknowledged',
        options,
      );
    }
  },
);

test.each(['interval', 'never'] as const)(
  'fsync "%s" may lose the end with the power, and no position then names another commit',
  async (fsync) => {
    const options = { ...SMALL, fsync };
    const history = await recordHistory(options);
    for (const crash of CRASHES) {
      for (let cut = 0; cut <= history.ops.length; cut += 1) {
        await checkRecovered(history, history.filesAfter(cut, crash), cut, 'a prefix', options);
      }
    }
  },
);

test('a crash in the middle of a recovery is recovered from', async () => {
  const history = await recordHistory(SMALL, 4);
  const cut = history.ops.findLastIndex((op) => op.op === 'write');
  for (const crash of CRASHES) {
    const files = history.filesAfter(cut, crash, 100);
    const { ops, setUpOps } = await checkRecovered(history, files, cut, 'all acknowledged', SMALL);
    const disk = new DiskModel();
    for (const [at, op] of ops.entries()) {
      disk.apply(op);
      if (at < setUpOps) continue;
      for (const second of ['killed', 'lost'] as const) {
        const again = withoutLock(disk.files(second));
        await checkAgain(again);
      }
    }
  }

  /** What recovery itself appends afterwards is not part of the history: only what it kept is looked at. */
  async function checkAgain(files: Map<string, Buffer>): Promise<void> {
    const broker = openOn(new RecordedFs(files), SMALL);
    for (const topic of TOPICS) {
      const written = history.written.get(topic) ?? [];
      const held = history.acknowledged.filter(
        (known) => known.topic === topic && known.afterOps <= cut,
      );
      const page = await broker.log.page(topic, 'earliest', 1000);
      if (page.verdict !== 'ok') return expect.fail(page.verdict);
      const values = page.commits.map((commit) => commit.entries[0]?.value);
      const known = values.filter((value) => value !== 'after the crash');
      expect(known).toEqual(written.slice(0, known.length));
      expect(known.length).toBeGreaterThanOrEqual(held.at(-1)?.position.ordinal ?? 0);
    }
    await broker.close();
  }
});
