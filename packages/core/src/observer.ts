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

/** Where a broker, and whatever stands on it, logs and counts. */
export interface Observer {
  readonly logger: Logger;
  readonly meter: Meter;
}

const nothing = (): void => {};
const SILENT: Observer = {
  logger: { debug: nothing, info: nothing, warn: nothing, error: nothing },
  meter: { count: nothing, record: nothing },
};

/**
 * Fills in what a user left out: silence. What a user's logger or meter throws is told once, as a warning of the process, and
 * goes no further: an entry is written and delivered all the same.
 */
export function resolveObserver({
  logger,
  meter,
}: {
  logger?: Logger | undefined;
  meter?: Meter | undefined;
}): Observer {
  return {
    logger: logger === undefined ? SILENT.logger : new GuardedLogger(logger),
    meter: meter === undefined ? SILENT.meter : new GuardedMeter(meter),
  };
}

class GuardedLogger implements Logger {
  readonly #logger: Logger;
  readonly #failed = warnOnce('logger');

  constructor(logger: Logger) {
    this.#logger = logger;
  }

  debug(fields: object, event: string): void {
    this.#write('debug', fields, event);
  }

  info(fields: object, event: string): void {
    this.#write('info', fields, event);
  }

  warn(fields: object, event: string): void {
    this.#write('warn', fields, event);
  }

  error(fields: object, event: string): void {
    this.#write('error', fields, event);
  }

  #write(level: keyof Logger, fields: object, event: string): void {
    try {
      this.#logger[level](fields, event);
    } catch (error) {
      this.#failed(error);
    }
  }
}

class GuardedMeter implements Meter {
  readonly #meter: Meter;
  readonly #failed = warnOnce('meter');

  constructor(meter: Meter) {
    this.#meter = meter;
  }

  count(name: string, by: number, attributes?: Attributes): void {
    try {
      this.#meter.count(name, by, attributes);
    } catch (error) {
      this.#failed(error);
    }
  }

  record(name: string, value: number, attributes?: Attributes): void {
    try {
      this.#meter.record(name, value, attributes);
    } catch (error) {
      this.#failed(error);
    }
  }
}

function warnOnce(what: string): (error: unknown) => void {
  let warned = false;
  return (error) => {
    if (warned) return;
    warned = true;
    process.emitWarning(`the ${what} given to a broker threw: ${error}`, {
      code: 'BROKERFEED_OBSERVER',
    });
  };
}
