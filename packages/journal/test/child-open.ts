import { journalBroker } from '../src/index.ts';

/** Opens a folder and keeps it until stdin ends. Prints `open`, or `refused` and why. */
const [dir = ''] = process.argv.slice(2);
try {
  const broker = journalBroker({ dir });
  const position = await broker.log.append('a', `from ${process.pid}`);
  console.log(`open ${position.ordinal}`);
  process.stdin.resume();
  process.stdin.on('end', () => {
    void broker.close().then(() => console.log('closed'));
  });
} catch (error) {
  console.log(`refused ${(error as { code?: string }).code} ${(error as Error).message}`);
}
