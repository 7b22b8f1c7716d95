import type { Child } from './child.ts';
import type { LoadApi } from './load-api.ts';
import { cpuUs, machineBusyUs } from './proc.ts';

/** What a stretch of a run cost. CPU in microseconds. */
export interface Usage {
  readonly seconds: number;
  readonly deliveries: number;
  readonly serverUs: number;
  readonly loadUs: number;
  readonly redisUs: number;
  /** CPU that processes other than ours used, as a share of one core. */
  readonly others: number;
}

export interface Metered {
  readonly server: number;
  readonly load: Child<LoadApi>;
  readonly redis: number;
}

/** Starts to measure. The function that is answered ends it. */
export async function startMeter(metered: Metered): Promise<() => Promise<Usage>> {
  const from = await reading(metered);
  return async () => {
    const to = await reading(metered);
    const seconds = (to.atMs - from.atMs) / 1000;
    const serverUs = to.serverUs - from.serverUs;
    const loadUs = to.loadUs - from.loadUs;
    const redisUs = to.redisUs - from.redisUs;
    const ours = serverUs + loadUs + redisUs + (to.ownUs - from.ownUs);
    const others = Math.max(0, (to.busyUs - from.busyUs - ours) / seconds / 1e6);
    const deliveries = to.deliveries - from.deliveries;
    return { seconds, deliveries, serverUs, loadUs, redisUs, others };
  };
}

async function reading({ server, load, redis }: Metered) {
  const { deliveries } = await load.call('tally', undefined);
  return {
    atMs: performance.now(),
    deliveries,
    serverUs: cpuUs(server),
    loadUs: cpuUs(load.pid),
    redisUs: cpuUs(redis),
    ownUs: cpuUs(process.pid),
    busyUs: machineBusyUs(),
  };
}
