import { EventEmitter } from 'node:events';
import { expect, test } from 'vitest';
import { WebSocketServer } from 'ws';
import { attachFeeds } from './attach-feeds.ts';

/** A connection whose client leaves as soon as it is told to. */
class ObedientSocket extends EventEmitter {
  readyState = 1;
  extensions = '';

  send(): void {
    this.emit('close');
  }

  close(): void {}

  terminate(): void {}
}

test('a server that is attached again, as beside each of several handlers, is drained by any', async () => {
  const wss = new WebSocketServer({ noServer: true });
  attachFeeds(wss);
  const again = attachFeeds(wss);
  wss.emit('connection', new ObedientSocket() as never, undefined as never);
  expect(await again.drain({ overMs: 0 })).toEqual({ moved: 1, closed: 0 });
});
