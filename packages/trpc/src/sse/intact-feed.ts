import { types } from 'node:util';
import { FeedIterator } from '../feed-iterator.ts';

/** Answers the feed that a value is: neither a stand-in for one, nor one on which somebody has put methods of his own. */
export function intactFeed(value: unknown): FeedIterator<unknown> | undefined {
  const isIntact =
    value instanceof FeedIterator &&
    !types.isProxy(value) &&
    Object.getPrototypeOf(value) === FeedIterator.prototype &&
    Reflect.ownKeys(value).length === 0;
  return isIntact ? value : undefined;
}
