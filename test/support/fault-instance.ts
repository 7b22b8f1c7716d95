/** An instance of a fault run as a process of its own: it says its port once it listens, and ends with its parent. */
import { redisBroker } from '@brokerfeed/redis';
import { Redis } from 'ioredis';
import { startFleetServer } from './fault-fleet.ts';

const [redisPort, prefix = '', topic = '', port, options = '{}'] = process.argv.slice(2);
const client = new Redis({ host: '127.0.0.1', port: Number(redisPort), lazyConnect: true });
const broker = redisBroker({ client, prefix, ...JSON.parse(options) });
const server = await startFleetServer(broker, topic, Number(port));
process.on('disconnect', () => process.exit(0));
process.send?.(server.port);
