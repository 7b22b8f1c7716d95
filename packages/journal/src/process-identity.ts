import { execFileSync } from 'node:child_process';
import { readFileSync, readlinkSync } from 'node:fs';
import { hostname } from 'node:os';

/** A process, told apart from others that have had or will have its pid. */
export interface ProcessIdentity {
  readonly pid: number;
  /** When it started, as the system tells it; undefined where it does not. */
  readonly start: string | undefined;
  /** Where its pid means something: the host, and on Linux the pid namespace. */
  readonly space: string;
}

/** What this process is. */
export function thisProcess(): ProcessIdentity {
  return { pid: process.pid, start: startOf(process.pid), space: pidSpace() };
}

/** Whether a process of our own pid space still runs. A process with the same pid and another start is not it. */
export function isRunning(owner: ProcessIdentity): boolean {
  // 0 and negative numbers mean groups of processes.
  if (owner.pid <= 0) return false;
  try {
    process.kill(owner.pid, 0);
  } catch (error) {
    // EPERM: it runs, and belongs to somebody else.
    if ((error as { code?: string }).code !== 'EPERM') return false;
  }
  const start = startOf(owner.pid);
  return start === undefined || owner.start === undefined || start === owner.start;
}

const STAT_START_FIELD = 22;
/** Fields of /proc/<pid>/stat before the one that follows the command's closing parenthesis. */
const FIELDS_BEFORE_STATE = 3;

function startOf(pid: number): string | undefined {
  switch (process.platform) {
    case 'linux':
      return linuxStart(pid);
    case 'darwin':
    case 'freebsd':
    case 'openbsd':
      return psStart(pid);
    default:
      return undefined;
  }
}

function linuxStart(pid: number): string | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    // The command may hold spaces and parentheses: fields are counted from its last parenthesis.
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    // A zombie holds its pid until it is waited for, and will never write again.
    if (fields[0] === 'Z' || fields[0] === 'X') return 'dead';
    const ticks = fields[STAT_START_FIELD - FIELDS_BEFORE_STATE];
    const machine = readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim();
    return `${machine}/${ticks}`;
  } catch {
    return undefined;
  }
}

function psStart(pid: number): string | undefined {
  try {
    return execFileSync('ps', ['-o', 'lstart=', '-p', String(pid)], { encoding: 'utf8' }).trim();
  } catch {
    return undefined;
  }
}

function pidSpace(): string {
  if (process.platform !== 'linux') return hostname();
  try {
    return `${hostname()}/${readlinkSync('/proc/self/ns/pid')}`;
  } catch {
    return hostname();
  }
}
