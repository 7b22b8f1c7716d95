import { expect, test } from 'vitest';
import { Turnstile } from './turnstile.ts';

/** Sends so many through, and notes who passed in which turn of the event loop. */
async function pass(turnstile: Turnstile, count: number): Promise<number[]> {
  let turn = 0;
  let running = true;
  const next = (): void => {
    turn += 1;
    if (running) setImmediate(next);
  };
  setImmediate(next);
  const turns: number[] = [];
  await Promise.all(
    Array.from({ length: count }, async (_, who) => {
      await turnstile.pass();
      turns[who] = turn;
    }),
  );
  running = false;
  return turns;
}

test('a few pass at once', () => {
  const turnstile = new Turnstile();
  expect(Array.from({ length: 64 }, () => turnstile.pass())).toEqual(Array(64).fill(undefined));
  expect(turnstile.pass()).toBeInstanceOf(Promise);
});

test('of many, 64 pass in each turn of the event loop, in the order in which they came', async () => {
  const turns = await pass(new Turnstile(), 300);
  expect(turns).toEqual([...turns].sort((a, b) => a - b));
  const perTurn = new Map<number, number>();
  for (const turn of turns) perTurn.set(turn, (perTurn.get(turn) ?? 0) + 1);
  expect([...perTurn.values()]).toEqual([64, 64, 64, 64, 44]);
});

test('whoever comes in a later turn stands behind those who wait', async () => {
  const turnstile = new Turnstile();
  const passed: number[] = [];
  const come = async (who: number): Promise<void> => {
    await turnstile.pass();
    passed.push(who);
  };
  const early = Array.from({ length: 200 }, (_, who) => come(who));
  await new Promise(setImmediate);
  const late = Array.from({ length: 200 }, (_, who) => come(200 + who));
  await Promise.all([...early, ...late]);
  expect(passed).toEqual([...Array(400).keys()]);
});

test('it is free again in the next turn', async () => {
  const turnstile = new Turnstile();
  for (let who = 0; who < 64; who += 1) expect(turnstile.pass()).toBeUndefined();
  await new Promise(setImmediate);
  expect(turnstile.pass()).toBeUndefined();
});
