import { expect, test } from 'vitest';
import { freshTopic, type GetSubject } from './broker-harness.ts';
import { follow } from './follower.ts';
import { readAll, tipOf, valuesOf } from './reading.ts';

const CLOSED = { name: 'BrokerError', code: 'CLOSED' };

/** What a closed broker does, and what it leaves alone. */
export function closeLaws(of: GetSubject): void {
  test('a closed broker rejects everything with CLOSED', async () => {
    const broker = await of().harness.peer();
    const { log } = broker;
    const topic = freshTopic();
    const position = await log.append(topic, 'a');
    await broker.close();
    const sink = { live: () => expect.fail('live'), commits: () => expect.fail('commits') };
    await expect(log.append(topic, 'b')).rejects.toMatchObject(CLOSED);
    await expect(log.page(topic, 'earliest', 1)).rejects.toMatchObject(CLOSED);
    await expect(log.page(topic, position, 0)).rejects.toMatchObject(CLOSED);
    await expect(log.bounds(topic)).rejects.toMatchObject(CLOSED);
    await expect(
      log.follow(topic, position, sink, new AbortController().signal),
    ).rejects.toMatchObject(CLOSED);
    expect(valuesOf(await readAll(of().log, topic, 'earliest'))).toEqual([['a']]);
  });

  test('close ends every live read with CLOSED, and nothing is delivered after it', async () => {
    const broker = await of().harness.peer();
    const topics = [freshTopic(), freshTopic()];
    const followers = await Promise.all(
      [...topics, ...topics].map(async (topic) =>
        follow(broker.log, topic, await tipOf(broker.log, topic)),
      ),
    );
    await broker.close();
    for (const topic of topics) await of().log.append(topic, 'late');
    for (const follower of followers) {
      await expect(follower.ended).rejects.toMatchObject(CLOSED);
      expect(follower.commits).toEqual([]);
    }
  });

  test('close waits for the appends under way: each is written, or was refused', async () => {
    const broker = await of().harness.peer();
    const topic = freshTopic();
    const appends = Array.from({ length: 20 }, (_, index) =>
      broker.log.append(topic, `v-${index}`),
    );
    let settled = 0;
    for (const append of appends) {
      const count = (): void => {
        settled += 1;
      };
      append.then(count, count);
    }
    await broker.close();
    expect(settled).toBe(20);
    const results = await Promise.allSettled(appends);
    const commits = await readAll(of().log, topic, 'earliest');
    const written = results.flatMap((result) =>
      result.status === 'fulfilled' ? [result.value] : [],
    );
    expect(commits.map((commit) => commit.position)).toEqual(written);
    for (const result of results) {
      if (result.status === 'rejected') expect(result.reason).toMatchObject(CLOSED);
    }
  });

  test('close may be called again, at the same time and later', async () => {
    const broker = await of().harness.peer();
    await Promise.all([broker.close(), broker.close()]);
    await broker.close();
    await broker[Symbol.asyncDispose]();
  });

  test('close leaves other instances alone', async () => {
    const { harness, log } = of();
    const topic = freshTopic();
    const broker = await harness.peer();
    const start = await tipOf(log, topic);
    const follower = await follow(log, topic, start);
    await broker.log.append(topic, 'a');
    await broker.close();
    await log.append(topic, 'b');
    await follower.received(2);
    expect(valuesOf(follower.commits).flat()).toEqual(['a', 'b']);
  });
}
