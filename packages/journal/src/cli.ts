#!/usr/bin/env node
import { existsSync } from 'node:fs';
import { type Finding, verify } from './verify.ts';

const USAGE = 'usage: brokerfeed-journal verify DIR';
/** Damage that only a person can judge. */
const EXIT_DAMAGE = 1;
const EXIT_USAGE = 2;

process.exitCode = main(process.argv.slice(2));

/** Prints one line for each finding and one in the end. Answers the exit code: 0 unless something is damaged. */
function main(args: readonly string[]): number {
  const [command, dir] = args;
  if (command !== 'verify' || dir === undefined || args.length > 2) {
    console.error(USAGE);
    return EXIT_USAGE;
  }
  if (!existsSync(dir)) {
    console.error(`${dir} does not exist`);
    return EXIT_USAGE;
  }
  const report = verify(dir);
  for (const finding of report.findings) console.log(printed(finding));
  const damages = report.findings.filter(({ kind }) => kind === 'damage').length;
  console.log(
    `${damages === 0 ? 'ok' : 'DAMAGED'}: ${report.segments} segments, ${report.records} records, ` +
      `${report.entries} entries, ${report.topics} topics, ${report.bytes} bytes, ${damages} damaged places`,
  );
  return damages === 0 ? 0 : EXIT_DAMAGE;
}

function printed({ kind, file, offset, message }: Finding): string {
  return `${kind} ${file} at byte ${offset}: ${message}`;
}
