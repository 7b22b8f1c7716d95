import { createHash } from 'node:crypto';
import { announce } from './announce.ts';
import { checkRetention, checkTopic, checkValue } from './append-check.ts';
import type { AppendOptions, Broker, Retention } from './broker.ts';
import { describe } from './describe.ts';
import { BrokerError, isBrokerError } from './errors.ts';
import { chain, isPromise, type MaybePromise } from './maybe-promise.ts';
import { functionOption, refuseOption } from './option-check.ts';
import type { Position } from './position.ts';
import {
  describeIssue,
  isStandardSchema,
  type SchemaResult,
  type StandardSchema,
} from './standard-schema.ts';
import type { TopicAppend } from './topic-commit.ts';
import { type Watch, watch } from './watch.ts';
import type { WatchOptions } from './watch-options.ts';

/** What there is to know about a kind of topic. `Input` is what is appended, `Output` what the schema makes of it. */
export interface TopicDefinition<Params, Input, Output> {
  /** Names the topic. No other topic can be written to through the definition. */
  readonly name: (params: Params) => string;
  /** Checks values (zod, valibot, arktype), as they are written and as they are read: what a reader gets of their JSON. */
  readonly schema: StandardSchema<Input, Output>;
  /** Makes appends harmless when they are repeated: names what a value is, such as by its own id. `undefined` for none. */
  readonly idempotencyKey?: (value: Input, params: Params) => string | undefined;
  /**
   * Makes the headers of each append, such as those of the trace under way:
   * `() => { const headers = {}; propagation.inject(context.active(), headers); return headers; }`
   */
  readonly headers?: (params: Params) => Readonly<Record<string, string>> | undefined;
  /**
   * What each append leaves of its topic: how far back a reader can go on. See {@link AppendOptions.retention}.
   * @default the broker's own
   */
  readonly retention?: Retention;
}

/** Defines a kind of topic: its names, its values, and how they are written. Throws `OPTION_INVALID`. */
export function defineTopic<Params, Input, Output>(
  definition: TopicDefinition<Params, Input, Output>,
): DefinedTopic<Params, Input, Output> {
  return new DefinedTopic(definition);
}

/** A kind of topic, made by {@link defineTopic}. It holds nothing open, and serves any number of brokers. */
export class DefinedTopic<Params, Input, Output> {
  /** What values are checked by, when they are appended and when they are read. */
  readonly schema: StandardSchema<Input, Output>;
  readonly #definition: TopicDefinition<Params, Input, Output>;
  /** As an option of an append: `{}` where the definition has none. */
  readonly #kept: { readonly retention?: Retention };

  constructor(definition: TopicDefinition<Params, Input, Output>) {
    if (typeof definition !== 'object' || definition === null)
      refuseOption('definition', 'an object', definition);
    const { name, schema, idempotencyKey, headers } = definition;
    const retention = checkRetention(definition.retention);
    if (typeof name !== 'function') refuseOption('name', 'a function', name);
    if (!isStandardSchema(schema))
      refuseOption('schema', 'a Standard Schema such as a zod one', schema);
    functionOption('idempotencyKey', idempotencyKey);
    functionOption('headers', headers);
    this.schema = schema;
    this.#kept = retention === undefined ? {} : { retention };
    this.#definition = definition;
  }

  /** Answers the name of one topic. Throws `TOPIC_INVALID`. */
  name(params: Params): string {
    const topic: unknown = this.#definition.name(params);
    checkTopic(topic);
    return topic;
  }

  /**
   * Appends one value as JSON. Rejects as the broker's `append` does, and with `VALUE_INVALID` and the path in the message
   * where the schema refuses what readers would get of it; nothing has been written then.
   *
   * An append is no part of your database's transaction: to lose none, write an outbox in that one, and append from it with
   * idempotency keys.
   */
  append(
    broker: Broker,
    params: Params,
    value: Input,
    options: AppendOptions = {},
  ): Promise<Position> {
    return this.appendAll(broker, params, [value], options);
  }

  /** Appends values as one commit: all or none. */
  async appendAll(
    broker: Broker,
    params: Params,
    values: readonly Input[],
    options: AppendOptions = {},
  ): Promise<Position> {
    const { log } = broker;
    const count = (outcome: string): void =>
      log.observer.meter.count('brokerfeed.topic.appends', 1, { outcome });
    try {
      const topic = this.name(params);
      const encoded = this.#encodeAll(topic, values);
      // Without a turn where the schema needs none: appends that are not awaited keep their order.
      const texts = isPromise(encoded) ? await encoded : encoded;
      const position = await log.append(topic, texts, this.#appendOptions(params, values, options));
      count('appended');
      return position;
    } catch (error) {
      count(isBrokerError(error) ? error.code : 'failed');
      throw error;
    }
  }

  /**
   * Makes this topic's part of a commit that spans topics: `log.appendAll([await orders.part(…), await stock.part(…)])`. The
   * definition's idempotency key is left out, since such a commit has one of its own. Rejects with `VALUE_INVALID`.
   */
  async part(params: Params, values: readonly Input[]): Promise<TopicAppend> {
    const topic = this.name(params);
    const headers = this.#definition.headers?.(params);
    const value = await this.#encodeAll(topic, values);
    return { topic, value, ...(headers === undefined ? {} : { headers }), ...this.#kept };
  }

  /**
   * Announces a value to whoever watches the topic now; nothing is stored. A function is called, and the schema asked, only
   * if somebody may hear. Throws as `announce` does, `VALUE_INVALID` where the schema refuses the value, and `UNSUPPORTED`
   * where the schema takes time: an announcement waits for nothing.
   */
  announce(broker: Broker, params: Params, value: Input | (() => Input)): void {
    const topic = this.name(params);
    announce(broker, topic, () => {
      const made = typeof value === 'function' ? (value as () => Input)() : value;
      const text = this.#encode(topic, made, 0, 1);
      if (!isPromise(text)) return text;
      text.catch(() => {}); // what becomes of it is of no more interest
      throw new BrokerError('UNSUPPORTED', 'an asynchronous schema cannot check an announcement');
    });
  }

  /** Watches the topic. {@link parse} makes values of its texts. */
  async watch(broker: Broker, params: Params, options?: WatchOptions): Promise<Watch> {
    return watch(broker, this.name(params), options);
  }

  /** Makes the value of an entry's or announcement's text. Rejects with `VALUE_INVALID`. */
  async parse(text: string): Promise<Output> {
    const result = await this.schema['~standard'].validate(parseJson(text));
    if (result.issues === undefined) return result.value;
    throw refused('a value is refused', result.issues);
  }

  #encodeAll(topic: string, values: readonly Input[]): MaybePromise<readonly string[]> {
    let texts: MaybePromise<string[]> = [];
    // One after the other, so that of two that are refused the second is not a rejection that nobody takes.
    values.forEach((value, index) => {
      texts = chain(texts, (before) =>
        chain(this.#encode(topic, value, index, values.length), (text) => {
          before.push(text);
          return before;
        }),
      );
    });
    return texts;
  }

  /** Makes the text of a value, and proves that a reader will accept it. */
  #encode(topic: string, value: Input, index: number, of: number): MaybePromise<string> {
    const text: unknown = encodeJson(value);
    checkValue(text);
    const accept = (result: SchemaResult<Output>): string => {
      if (result.issues === undefined) return text;
      const which = of === 1 ? 'a value' : `value ${index} of ${of}`;
      throw refused(`${which} of topic ${describe(topic)} is refused`, result.issues);
    };
    // Not the value but what its JSON says: a Date that was given is text to those who read it.
    return chain(this.schema['~standard'].validate(parseJson(text)), accept);
  }

  #appendOptions(params: Params, values: readonly Input[], options: AppendOptions): AppendOptions {
    const headers = { ...this.#definition.headers?.(params), ...options.headers };
    const idempotencyKey = options.idempotencyKey ?? this.#keyOf(params, values);
    const { retention } = options;
    return {
      headers,
      ...(idempotencyKey === undefined ? {} : { idempotencyKey }),
      ...(retention === undefined ? this.#kept : { retention }),
    };
  }

  /** One key for the commit: that of its value, or what stands for those of all. None unless each value has one. */
  #keyOf(params: Params, values: readonly Input[]): string | undefined {
    const { idempotencyKey } = this.#definition;
    if (idempotencyKey === undefined) return undefined;
    const keys: string[] = [];
    for (const value of values) {
      const key = idempotencyKey(value, params);
      if (key === undefined) return undefined;
      keys.push(key);
    }
    if (keys.length === 1) return keys[0];
    return createHash('sha256').update(JSON.stringify(keys)).digest('base64url');
  }
}

function encodeJson(value: unknown): unknown {
  try {
    return JSON.stringify(value);
  } catch (error) {
    throw new BrokerError('VALUE_INVALID', `a value has no JSON: ${(error as Error).message}`, {
      cause: error,
    });
  }
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new BrokerError('VALUE_INVALID', 'a value is not JSON', { cause: error });
  }
}

function refused(what: string, issues: Parameters<typeof describeIssue>[0]): BrokerError {
  return new BrokerError('VALUE_INVALID', `${what}${describeIssue(issues)}`, { cause: issues });
}
