import { expect, test } from 'vitest';
import { Scheduler } from './scheduler.ts';

function settled(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

/** Keeps the process busy for so many milliseconds. */
function work(ms: number): void {
  const end = performance.now() + ms;
  while (performance.now() < end);
}

test('turns run in order, after what runs now', async () => {
  const scheduler = new Scheduler();
  const ran: number[] = [];
  for (let n = 0; n < 200; n += 1) scheduler.add({ turn: () => ran.push(n) });
  expect(ran).toEqual([]);
  while (ran.length < 200) await settled();
  expect(ran).toEqual([...Array(200).keys()]);
});

test('whoever asks for another turn waits until all others had theirs', async () => {
  const scheduler = new Scheduler();
  const ran: string[] = [];
  const flood = { turn: () => ran.push('flood') };
  const again = {
    turn() {
      ran.push('again');
      if (ran.length < 300) scheduler.add(again);
    },
  };
  scheduler.add(again);
  for (let n = 0; n < 100; n += 1) scheduler.add(flood);
  while (ran.length < 102) await settled();
  expect(ran.slice(0, 102)).toEqual(['again', ...Array(100).fill('flood'), 'again']);
});

test('what turns wrote is flushed once for each round of them, and after the last', async () => {
  const scheduler = new Scheduler();
  let written = 0;
  const flushes: number[] = [];
  const outlet = {
    flush() {
      flushes.push(written);
      written = 0;
    },
  };
  const turn = (): void => {
    if (written === 0) scheduler.flushLater(outlet);
    written += 1;
  };
  for (let n = 0; n < 150; n += 1) scheduler.add({ turn });
  const flushed = (): number => flushes.reduce((sum, count) => sum + count, 0);
  while (flushed() < 150) await settled();
  expect(Math.max(...flushes)).toBeLessThanOrEqual(64);
  expect(flushes.length).toBeLessThan(20);
});

test('an outlet is flushed though no turn is queued', async () => {
  const scheduler = new Scheduler();
  let flushed = 0;
  scheduler.flushLater({ flush: () => (flushed += 1) });
  await settled();
  expect(flushed).toBe(1);
});

test('other work gets its turn between slow turns, and what was written leaves before it', async () => {
  const scheduler = new Scheduler();
  const events: string[] = [];
  const outlet = { flush: () => events.push('flush') };
  for (let n = 0; n < 5; n += 1) {
    scheduler.add({
      turn() {
        work(10);
        events.push('turn');
        scheduler.flushLater(outlet);
      },
    });
  }
  for (let n = 0; n < 5; n += 1) {
    await settled();
    events.push('other');
  }
  await settled();
  expect(events.join(' ')).toBe(Array(5).fill('turn flush other').join(' '));
});

test('a turn that is added by a flush is run', async () => {
  const scheduler = new Scheduler();
  const ran: string[] = [];
  scheduler.flushLater({
    flush() {
      ran.push('flush');
      scheduler.add({ turn: () => ran.push('turn') });
    },
  });
  await settled();
  await settled();
  expect(ran).toEqual(['flush', 'turn']);
});

test('other work gets its turn between slow writes, and all are done in order', async () => {
  const scheduler = new Scheduler();
  const events: string[] = [];
  for (let n = 0; n < 4; n += 1) {
    scheduler.flushLater({
      flush() {
        work(10);
        events.push(`${n}`);
      },
    });
  }
  while (events.filter((event) => event !== 'other').length < 4) {
    await settled();
    events.push('other');
  }
  expect(events.filter((event) => event !== 'other')).toEqual(['0', '1', '2', '3']);
  expect(events.indexOf('other')).toBeLessThan(events.indexOf('3'));
});
