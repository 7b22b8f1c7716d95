import { readdirSync, readFileSync, writeFileSync } from 'node:fs';

/*
 * The kernel's own accounting. It counts what a process cost wherever the cost arose: its JavaScript, its garbage
 * collector's threads, its system calls.
 */

/** Length of the kernel's clock tick in `/proc/<pid>/stat`. */
const TICK_US = 10_000;

/** CPU time that a process has used, all its threads together, in microseconds. */
export function cpuUs(pid: number): number {
  try {
    let ns = 0;
    for (const thread of readdirSync(`/proc/${pid}/task`)) {
      ns += Number(readFileSync(`/proc/${pid}/task/${thread}/schedstat`, 'latin1').split(' ')[0]);
    }
    return ns / 1000;
  } catch {
    return ticksUs(pid);
  }
}

/** The same where the kernel keeps no `schedstat`: to 10 ms. */
function ticksUs(pid: number): number {
  const stat = readFileSync(`/proc/${pid}/stat`, 'latin1');
  // The name of the process stands in parentheses, and may hold anything.
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  return (Number(fields[11]) + Number(fields[12])) * TICK_US;
}

/** CPU time that the whole machine has been busy, in microseconds. */
export function machineBusyUs(): number {
  const [line = ''] = readFileSync('/proc/stat', 'latin1').split('\n');
  const [user = 0, nice = 0, system = 0, , , irq = 0, softirq = 0] = line
    .trim()
    .split(/\s+/)
    .slice(1)
    .map(Number);
  return (user + nice + system + irq + softirq) * TICK_US;
}

/** The most memory a process has held since {@link resetPeak}, in MiB. */
export function peakMiB(pid: number): number {
  const status = readFileSync(`/proc/${pid}/status`, 'latin1');
  return Number(/VmHWM:\s+(\d+)/.exec(status)?.[1]) / 1024;
}

export function resetPeak(pid: number): void {
  writeFileSync(`/proc/${pid}/clear_refs`, '5');
}
