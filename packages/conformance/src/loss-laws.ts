import type { Position } from '@brokerfeed/core';
import { expect, test } from 'vitest';
import { freshTopic, type GetSubject } from './broker-harness.ts';
import { follow, startFollow } from './follower.ts';
import { aheadOf, foreign, forkedAt } from './forged.ts';
import { appendEach, at, expectContiguous, numbered, tipOf, valuesOf } from './reading.ts';

const ROUNDS = 20;

/** How a live read tells that it cannot go on without a hole. */
export function lossLaws(of: GetSubject): void {
  test('a live read from a lost position resolves with the loss, and nothing is delivered', async () => {
    const { log, harness } = of();
    const topic = freshTopic();
    const positions = await appendEach(log, topic, numbered(5));
    await harness.trim(topic, 2);
    const tip = at(positions, 4);
    const cases: (readonly [string, Position])[] = [
      ['trimmed', at(positions, 1)],
      ['epoch', foreign(tip)],
      ['ahead', aheadOf(tip)],
      ['forked', forkedAt(at(positions, 3), tip)],
    ];
    for (const [loss, position] of cases) {
      const follower = startFollow(log, topic, position);
      expect(await follower.ended).toBe(loss);
      expect(follower.calls).toEqual([]);
    }
  });

  test('a live read from the last trimmed commit loses nothing', async () => {
    const { log, harness } = of();
    const topic = freshTopic();
    const positions = await appendEach(log, topic, numbered(5));
    await harness.trim(topic, 2);
    const follower = await follow(log, topic, at(positions, 2));
    await follower.received(2);
    expect(valuesOf(follower.commits)).toEqual([['v-3'], ['v-4']]);
  });

  test('a trim of what was delivered already does not end a live read', async () => {
    const { log, harness } = of();
    const topic = freshTopic();
    const start = await tipOf(log, topic);
    const follower = await follow(log, topic, start);
    for (const value of numbered(5)) {
      await log.append(topic, value);
      await follower.received(1 + Number(value.slice(2)));
      await harness.trim(topic, 0);
    }
    expect(valuesOf(follower.commits).flat()).toEqual(numbered(5));
    expectContiguous(start, follower.commits);
  });

  test('a topic deleted under a quiet live read ends it with "epoch"', async () => {
    const { log, harness } = of();
    const topic = freshTopic();
    const follower = await follow(log, topic, await log.append(topic, 'a'));
    await harness.drop(topic);
    expect(await follower.ended).toBe('epoch');
    expect(follower.commits).toEqual([]);
  });

  test('a topic deleted and written anew ends its live reads with "epoch", whatever its new ordinals', async () => {
    const { log, peerLog, harness } = of();
    const topic = freshTopic();
    const positions = await appendEach(log, topic, numbered(3));
    const followers = await Promise.all(positions.map((position) => follow(log, topic, position)));
    await Promise.all([at(followers, 0).received(2), at(followers, 1).received(1)]);
    await harness.drop(topic);
    await appendEach(peerLog, topic, numbered(5, 'new'));
    for (const follower of followers) {
      expect(await follower.ended).toBe('epoch');
      expect(valuesOf(follower.commits).flat().join()).not.toContain('new');
    }
  });

  test('a never-written topic deleted under a live read ends it with "epoch"', async () => {
    const { log, peerLog, harness } = of();
    const topic = freshTopic();
    const follower = await follow(log, topic, await tipOf(log, topic));
    await harness.drop(topic);
    await peerLog.append(topic, 'a');
    expect(await follower.ended).toBe('epoch');
    expect(follower.commits).toEqual([]);
  });

  test('a topic deleted or trimmed leaves the live reads of others alone', async () => {
    const { log, harness } = of();
    const [topic, other] = [freshTopic(), freshTopic()];
    await log.append(other, 'x');
    const doomed = await follow(log, other, await tipOf(log, other));
    const follower = await follow(log, topic, await tipOf(log, topic));
    await harness.trim(other, 0);
    await harness.drop(other);
    expect(await doomed.ended).toBe('epoch');
    await log.append(topic, 'a');
    await follower.received(1);
  });

  test('a live read that a trim overtakes ends with "trimmed" right after its last whole run', async () => {
    const { log, harness } = of();
    const topic = freshTopic();
    const start = await tipOf(log, topic);
    await Promise.all(numbered(3000).map((value) => log.append(topic, value)));
    let trimming: Promise<void> | undefined;
    const follower = startFollow(log, topic, start, () => {
      trimming ??= harness.trim(topic, 1);
    });
    // A broker that had read ahead may have all of it in hand; one that had not must not skip.
    const loss = await Promise.race([follower.ended, follower.received(3000).then(() => 'all')]);
    await trimming;
    expectContiguous(start, follower.commits);
    if (follower.commits.length < 3000) expect(loss).toBe('trimmed');
    else expect(loss).toBe('all');
  });

  test('an append and a trim that race a live read are delivered or told, never skipped', async () => {
    const { log, peerLog, harness } = of();
    const told = await Promise.all(
      Array.from({ length: ROUNDS }, async () => {
        const topic = freshTopic();
        const start = await log.append(topic, 'a');
        const follower = await follow(log, topic, start);
        await peerLog.append(topic, 'b');
        await harness.trim(topic, 0);
        await peerLog.append(topic, 'c');
        const end = await Promise.race([follower.ended, follower.received(2).then(() => 'all')]);
        expectContiguous(start, follower.commits);
        const values = valuesOf(follower.commits).flat();
        return end === 'all' ? values.join() === 'b,c' : end === 'trimmed' && values.length === 0;
      }),
    );
    expect(told).toEqual(told.map(() => true));
  });
}
