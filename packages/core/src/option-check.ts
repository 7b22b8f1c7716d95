import { describe } from './describe.ts';
import { BrokerError } from './errors.ts';

/** Refuses an option. The sentence names it. */
export function refuseOption(name: string, rule: string, value: unknown): never {
  throw new BrokerError('OPTION_INVALID', `${name} is ${rule}, not ${describe(value)}`);
}

/** Checks a whole number in a range, or takes the default. */
export function integerOption(
  name: string,
  value: number | undefined,
  fallback: number,
  min: number,
  max: number = Number.MAX_SAFE_INTEGER,
): number {
  if (value === undefined) return fallback;
  if (!Number.isSafeInteger(value) || value < min || value > max) {
    const range = max === Number.MAX_SAFE_INTEGER ? `of at least ${min}` : `from ${min} to ${max}`;
    return refuseOption(name, `a whole number ${range}`, value);
  }
  return value;
}

/** Checks that an option, where given, is a function. */
export function functionOption(name: string, value: unknown): void {
  if (value !== undefined && typeof value !== 'function') refuseOption(name, 'a function', value);
}
