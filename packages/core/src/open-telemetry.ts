import type { Attributes, Meter } from './observer.ts';

/** What is used of a meter of `@opentelemetry/api`. */
export interface OpenTelemetryMeter {
  createCounter(
    name: string,
    options: InstrumentOptions,
  ): {
    add(value: number, attributes?: Attributes): void;
  };
  createHistogram(
    name: string,
    options: InstrumentOptions,
  ): {
    record(value: number, attributes?: Attributes): void;
  };
}

interface InstrumentOptions {
  readonly unit?: string;
}

/**
 * Sends measurements to OpenTelemetry: `meter: openTelemetryMeter(metrics.getMeter('brokerfeed'))`, once the SDK was set up.
 * Counters become counters and distributions histograms, of the same names.
 */
export function openTelemetryMeter(meter: OpenTelemetryMeter): Meter {
  const counters = new Map<string, ReturnType<OpenTelemetryMeter['createCounter']>>();
  const histograms = new Map<string, ReturnType<OpenTelemetryMeter['createHistogram']>>();
  return {
    count(name, by, attributes) {
      let counter = counters.get(name);
      if (counter === undefined) {
        counter = meter.createCounter(name, {});
        counters.set(name, counter);
      }
      counter.add(by, attributes);
    },
    record(name, value, attributes) {
      let histogram = histograms.get(name);
      if (histogram === undefined) {
        histogram = meter.createHistogram(name, { unit: unitOf(name) });
        histograms.set(name, histogram);
      }
      histogram.record(value, attributes);
    },
  };
}

/** The distributions that are times, in seconds. */
const TIMES: readonly string[] = ['brokerfeed.topic.retained'];

function unitOf(name: string): string {
  return TIMES.includes(name) ? 's' : '1';
}
