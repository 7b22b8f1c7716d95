import type { Logger } from '../../src/index.ts';

export interface LogLine {
  readonly level: keyof Logger;
  readonly event: string;
  readonly fields: Readonly<Record<string, unknown>>;
}

/** A logger that keeps the lines of events with a name that begins so. */
export function logLines(prefix = ''): { readonly logger: Logger; readonly lines: LogLine[] } {
  const lines: LogLine[] = [];
  const line = (level: keyof Logger) => (fields: object, event: string) => {
    if (event.startsWith(prefix)) lines.push({ level, event, fields: { ...fields } });
  };
  const logger: Logger = {
    debug: line('debug'),
    info: line('info'),
    warn: line('warn'),
    error: line('error'),
  };
  return { logger, lines };
}
