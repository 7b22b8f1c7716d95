import { journalBroker } from '../src/index.ts';

/**
 * Appends as fast as it can, on several topics, with a live read on each, until it is killed. Prints one line for each
 * acknowledged commit (`ack`) and for each one that a reader was handed (`saw`): topic, number, position.
 */
const [dir = '', fsync = 'commit', round = '0'] = process.argv.slice(2);
const PRODUCERS = 8;
const TOPICS = ['a', 'b'];

const broker = journalBroker({ dir, fsync: fsync as 'commit', segmentBytes: 64 * 1024 });
for (const topic of TOPICS) {
  const { last } = await broker.log.bounds(topic);
  const sink = {
    live: () => {},
    commits: (commits: readonly { position: object }[]) => {
      for (const { position } of commits) print('saw', topic, position);
    },
  };
  void broker.log.follow(topic, last, sink, new AbortController().signal);
}
console.log('ready');
await Promise.all(Array.from({ length: PRODUCERS }, (_, producer) => produce(producer)));

async function produce(producer: number): Promise<void> {
  for (let count = 0; ; count += 1) {
    const value = JSON.stringify({ round, producer, count, pad: 'x'.repeat((count * 37) % 300) });
    const topic = TOPICS[(producer + count) % TOPICS.length] as string;
    print('ack', topic, await broker.log.append(topic, value), value);
  }
}

function print(kind: string, topic: string, position: object, value = ''): void {
  process.stdout.write(`${kind} ${JSON.stringify({ topic, position, value })}\n`);
}
