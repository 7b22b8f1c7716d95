import { expect, test } from 'vitest';
import { keySlot } from './key-slot.ts';

test.each([
  ['', 0],
  // The check value of CRC-16/XMODEM.
  ['123456789', 0x31c3],
  ['foo', 12182],
  ['{foo}.x', 12182],
  ['a{foo}{bar}', 12182],
  ['foo{}{bar}', 8363],
  ['foo{{bar}}zap', 4015],
])('%j is in slot %d', (key, slot) => {
  expect(keySlot(key)).toBe(slot);
});
