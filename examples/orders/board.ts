import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { brokerKind, dataDir, isDurable } from './broker.ts';
import { Cluster } from './cluster.ts';
import { freePort } from './free-port.ts';
import { buildPage } from './page-build.ts';
import { startProxy, type TcpProxy } from './proxy.ts';

/**
 * Serves the board until told to stop: one server, or two behind a proxy where they can share a log. Builds the page, unless
 * `ORDERS_PAGE` names a folder that has it.
 */
export async function runBoard(
  env: NodeJS.ProcessEnv,
  wantedPort: number,
  signal: AbortSignal,
): Promise<void> {
  const kind = brokerKind(env);
  const port = await freePort(wantedPort);
  await using page = env.ORDERS_PAGE === undefined ? await buildPage() : undefined;
  const cluster = new Cluster({ env: { ORDERS_PAGE: page?.dir, ...env }, log: console.log });
  let proxy: TcpProxy | undefined;
  try {
    if (kind === 'redis') {
      await Promise.all([cluster.add(), cluster.add()]);
      proxy = await startProxy(port, () => cluster.instances);
    } else {
      await cluster.add(port);
    }
    await page?.done;
    const after = isDurable(kind)
      ? 'clients go on where they were'
      : 'clients get a snapshot, since the memory broker forgets';
    console.log(`\nOrders on the ${kind} broker: http://127.0.0.1:${port}`);
    if (kind === 'journal') {
      console.log(`They are kept in ${dataDir(env)}: start the demo again, and the page goes on.`);
    }
    console.log(`Type "kill" to end a server: ${after}. Ctrl-C ends the demo.`);
    if (kind === 'redis') console.log('Type "replace" to have one move its clients first.');
    console.log();
    takeCommands(cluster, signal);
    if (!signal.aborted) await once(signal, 'abort');
  } finally {
    await proxy?.close();
    await cluster.close();
  }
}

/** Ends an instance for every `kill` or `replace` on stdin, each in its turn. */
function takeCommands(cluster: Cluster, signal: AbortSignal): void {
  let turn = 0;
  createInterface({ input: process.stdin, signal }).on('line', (line) => {
    const command = line.trim();
    if (command !== 'kill' && command !== 'replace') return;
    const live = cluster.instances.filter((instance) => instance.live);
    live[turn++ % Math.max(live.length, 1)]?.[command]().catch(console.error);
  });
}
