import { expect, test } from 'vitest';
import type { Broker } from './broker.ts';
import { announce, watch } from './index.ts';
import { memoryBroker } from './memory/index.ts';

const T = 'orders';

test('an announcement that nobody hears is not made', async () => {
  await using broker = memoryBroker();
  await using elsewhere = await watch(broker, 'another topic');
  const gone = await watch(broker, T);
  gone.close();
  announce(broker, T, () => expect.fail('it was made'));
  expect(elsewhere.tryNext()).toEqual({ kind: 'empty' });
});

test('an announcement on a closed broker, of no text, or over a broker that carries none is refused', async () => {
  const broker = memoryBroker();
  await using _watching = await watch(broker, T);
  expect(() => announce(broker, T, 5 as never)).toThrow(code('VALUE_INVALID'));
  expect(() => announce(broker, T, () => '\ud800')).toThrow(code('VALUE_INVALID'));
  await broker.close();
  expect(() => announce(broker, T, 'a')).toThrow(code('CLOSED'));
  const mute: Broker = { ...memoryBroker(), announcer: undefined as never };
  expect(() => announce(mute, T, 'a')).toThrow(code('UNSUPPORTED'));
  await expect(watch(mute, T, { only: 'announcements' })).rejects.toEqual(code('UNSUPPORTED'));
  await using watching = await watch(mute, T);
  await mute.log.append(T, 'a');
  expect(await watching.next()).toMatchObject({ entry: { value: 'a' } });
});

function code(name: string): unknown {
  return expect.objectContaining({ name: 'BrokerError', code: name });
}
