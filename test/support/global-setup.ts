// Without it TypeScript does not see the module that is augmented below.
import type {} from 'vitest';
import type { TestProject } from 'vitest/node';
import { type FoundRedis, findRedis } from './find-redis.ts';

declare module 'vitest' {
  interface ProvidedContext {
    /** The run's shared Redis. Others use it at the same time: take a random key prefix. */
    readonly redisUrl: string;
  }
}

let redis: FoundRedis | undefined;

/** Finds the Redis of this run, once, before any test file. */
export async function setup(project: TestProject): Promise<void> {
  redis = await findRedis();
  console.log(`Redis: ${redis.origin}`);
  project.provide('redisUrl', redis.url);
}

export async function teardown(): Promise<void> {
  await redis?.[Symbol.asyncDispose]();
}
