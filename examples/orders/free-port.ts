import { once } from 'node:events';
import { type AddressInfo, createServer } from 'node:net';

/** Answers the port wanted, or a free one where it is taken or 0. */
export async function freePort(wanted = 0): Promise<number> {
  const probe = createServer();
  try {
    probe.listen(wanted, '127.0.0.1');
    await once(probe, 'listening');
    return (probe.address() as AddressInfo).port;
  } catch (error) {
    if (wanted === 0) throw error;
    return freePort();
  } finally {
    probe.close();
  }
}
