import { once } from 'node:events';
import { expect, test } from 'vitest';
import { type Logger, type Meter, resolveObserver } from './observer.ts';

function fail(): never {
  throw new Error('the disk of the logs is full');
}

const LOGGER: Logger = { debug: fail, info: fail, warn: fail, error: fail };
const METER: Meter = { count: fail, record: fail };

test('a logger and a meter that throw are told of by one warning each, and stop nothing', async () => {
  const warnings: Error[] = [];
  const note = (warning: Error): unknown => warnings.push(warning);
  process.on('warning', note);
  const { logger, meter } = resolveObserver({ logger: LOGGER, meter: METER });
  for (const level of ['debug', 'info', 'warn', 'error'] as const) logger[level]({}, 'some.event');
  meter.count('some.count', 1);
  meter.record('some.value', 1);
  while (warnings.length < 2) await once(process, 'warning');
  process.off('warning', note);
  expect(warnings.map(({ message }) => message)).toEqual([
    'the logger given to a broker threw: Error: the disk of the logs is full',
    'the meter given to a broker threw: Error: the disk of the logs is full',
  ]);
});

test('a logger is called as the method that it is', () => {
  class Lines implements Logger {
    readonly events: string[] = [];
    debug(_: object, event: string): void {
      this.events.push(`debug ${event}`);
    }
    info(_: object, event: string): void {
      this.events.push(`info ${event}`);
    }
    warn(_: object, event: string): void {
      this.events.push(`warn ${event}`);
    }
    error(_: object, event: string): void {
      this.events.push(`error ${event}`);
    }
  }
  const lines = new Lines();
  const { logger } = resolveObserver({ logger: lines });
  for (const level of ['debug', 'info', 'warn', 'error'] as const) logger[level]({}, 'some.event');
  expect(lines.events).toEqual(
    ['debug', 'info', 'warn', 'error'].map((level) => `${level} some.event`),
  );
});
