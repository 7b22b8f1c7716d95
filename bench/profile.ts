/** Says where the time of a CPU profile went: `tsx bench/profile.ts <file> [lines]`. By function, without its callees. */
import { readFileSync } from 'node:fs';

/** The part of V8's format that is read. */
interface Profile {
  readonly nodes: readonly {
    readonly id: number;
    readonly callFrame: {
      readonly functionName: string;
      readonly url: string;
      readonly lineNumber: number;
    };
  }[];
  readonly samples: readonly number[];
  /** Microseconds between samples. */
  readonly timeDeltas: readonly number[];
}

const DEFAULT_LINES = 30;
const IDLE: ReadonlySet<string> = new Set(['(idle)', '(root)']);

const [file, lines = DEFAULT_LINES] = process.argv.slice(2);
if (file === undefined) throw new Error('tsx bench/profile.ts <file.cpuprofile> [lines]');
const profile = JSON.parse(readFileSync(file, 'utf8')) as Profile;

const names = new Map(profile.nodes.map(({ id, callFrame }) => [id, nameOf(callFrame)]));
const times = new Map<string, number>();
profile.samples.forEach((id, index) => {
  const name = names.get(id) ?? '';
  times.set(name, (times.get(name) ?? 0) + (profile.timeDeltas[index] ?? 0));
});
for (const name of IDLE) times.delete(name);
const busy = [...times.values()].reduce((sum, time) => sum + time, 0);

console.log(`busy for ${Math.round(busy / 1000)} ms`);
const sorted = [...times].sort(([, a], [, b]) => b - a).slice(0, Number(lines));
for (const [name, time] of sorted) {
  const share = ((time / busy) * 100).toFixed(1).padStart(5);
  console.log(`${share} %  ${String(Math.round(time / 1000)).padStart(6)} ms  ${name}`);
}

function nameOf({ functionName, url, lineNumber }: Profile['nodes'][number]['callFrame']): string {
  const name = functionName || '(anonymous)';
  if (url === '') return name;
  // The path within its package tells enough.
  const place = url.replace(/^.*\/node_modules\//, '').replace(/^file:\/\//, '');
  return `${name}  ${place}:${lineNumber + 1}`;
}
