// Type tests, compiled by `tsc -p tsconfig.test.json`: a defined topic is written to as it is defined, and not otherwise.
import type { Broker, DefinedTopic } from './index.ts';

interface Order {
  readonly id: string;
  readonly price: number;
}
declare const broker: Broker;
declare const orders: DefinedTopic<{ tenant: string }, Order, Order>;

void orders.append(broker, { tenant: 'acme' }, { id: 'a', price: 1 });
// @ts-expect-error - no such params: a slip of the pen names no topic
void orders.append(broker, { tennant: 'acme' }, { id: 'a', price: 1 });
// @ts-expect-error - a name is made of params, not given
void orders.append(broker, 'orders.acme', { id: 'a', price: 1 });
// @ts-expect-error - the price is missing
void orders.append(broker, { tenant: 'acme' }, { id: 'a' });
// @ts-expect-error - no such property in the value
void orders.appendAll(broker, { tenant: 'acme' }, [{ id: 'a', price: 1, prize: 1 }]);
// @ts-expect-error - the price is a number
orders.announce(broker, { tenant: 'acme' }, () => ({ id: 'a', price: 'much' }));
