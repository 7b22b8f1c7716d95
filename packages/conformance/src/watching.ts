import {
  type Broker,
  type Watch,
  type WatchItem,
  type WatchOptions,
  watch,
} from '@brokerfeed/core';
import { expect, onTestFinished } from 'vitest';

/** Opens a watch that ends with the test. */
export async function open(
  broker: Broker,
  topic: string,
  options: Pick<WatchOptions, 'capacity' | 'only'> = {},
): Promise<Watch> {
  const watching = await watch(broker, topic, { ...options, lingerMs: 0 });
  onTestFinished(() => watching.close());
  return watching;
}

/** Takes so many events, none of which may be a lag, and answers their texts. */
export async function take(watching: Watch, count: number): Promise<string[]> {
  const texts: string[] = [];
  while (texts.length < count) texts.push(textOf(await watching.next()));
  return texts;
}

export function textOf(item: WatchItem | { readonly kind: 'closed' }): string {
  if (item.kind === 'entry') return item.entry.value;
  if (item.kind === 'announcement') return item.value;
  return expect.fail(`the watch answered ${JSON.stringify(item)}`);
}
