import { expect, test } from 'vitest';
import { EPOCH_PATTERN, newEpoch } from './position.ts';

test('epochs are well-formed, and no two are the same', () => {
  const epochs = Array.from({ length: 2000 }, newEpoch);
  expect(new Set(epochs).size).toBe(2000);
  for (const epoch of epochs) expect(epoch).toMatch(EPOCH_PATTERN);
});
