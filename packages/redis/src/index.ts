export type { RedisBrokerOptions, RedisRetention } from './options.ts';
export { redisBroker } from './redis-broker.ts';
