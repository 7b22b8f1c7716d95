// Run by a test: reads live, closes everything, and must then end by itself.
import { redisBroker } from '@brokerfeed/redis';
import { Redis } from 'ioredis';

const client = new Redis(process.argv[2] as string);
const broker = redisBroker({ client, prefix: `exit-${crypto.randomUUID()}`, checkMs: 600_000 });
const from = await broker.log.append('t', 'a');
const received = new Promise<string | undefined>((resolve) => {
  const sink = {
    live: () => {},
    commits: (commits: readonly { entries: readonly { value: string }[] }[]) =>
      resolve(commits[0]?.entries[0]?.value),
  };
  broker.log.follow('t', from, sink, new AbortController().signal).catch(() => {});
});
await broker.log.append('t', 'b');
console.log(await received);
await broker.close();
client.disconnect();
console.log('closed');
