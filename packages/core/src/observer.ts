/** Where log lines go: pino's shape. A field bag first, then a dotted event name such as `tail.restart`. */
export interface Logger {
  debug(fields: object, event: string): void;
  info(fields: object, event: string): void;
  warn(fields: object, event: string): void;
  error(fields: object, event: string): void;
}

/** Low-cardinality attributes of a measurement. Never a token, an id that a peer sent, or a value. */
export type Attributes = Readonly<Record<string, string | number>>;

/** Where measurements go. Names are listed in docs/operations.md. */
export interface Meter {
  /** Adds to a counter. */
  count(name: string, by: number, attributes?: Attributes): void;
  /** Records one value of a distribution. */
  record(name: string, value: number, attributes?: Attributes): void;
}

export interface Observer {
  readonly logger: Logger;
  readonly meter: Meter;
}

const nothing = (): void => {};
const SILENT: Observer = {
  logger: { debug: nothing, info: nothing, warn: nothing, error: nothing },
  meter: { count: nothing, record: nothing },
};

/** Fills in what a user left out: silence. */
export function resolveObserver(options: {
  logger?: Logger | undefined;
  meter?: Meter | undefined;
}): Observer {
  return { logger: options.logger ?? SILENT.logger, meter: options.meter ?? SILENT.meter };
}
