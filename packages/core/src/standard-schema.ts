/**
 * The part of the Standard Schema interface that a feed needs; zod, valibot and arktype implement it.
 *
 * @see {@link https://standardschema.dev}
 */
export interface StandardSchema<Input = unknown, Output = Input> {
  readonly '~standard': {
    readonly version: 1;
    readonly vendor: string;
    readonly validate: (value: unknown) => SchemaResult<Output> | Promise<SchemaResult<Output>>;
    readonly types?: { readonly input: Input; readonly output: Output } | undefined;
  };
}

export type SchemaResult<Output> =
  | { readonly value: Output; readonly issues?: undefined }
  | {
      readonly issues: readonly {
        readonly message: string;
        readonly path?: readonly (PropertyKey | { readonly key: PropertyKey })[] | undefined;
      }[];
    };

/** Tells whether a value is a schema. (arktype's are functions.) */
export function isStandardSchema(value: unknown): value is StandardSchema {
  const kind = typeof value;
  return (
    value !== null && (kind === 'object' || kind === 'function') && '~standard' in (value as object)
  );
}

/** Describes the first thing that a schema has to say against a value: ` at items.0.price: expected a number`. */
export function describeIssue(issues: NonNullable<SchemaResult<unknown>['issues']>): string {
  const [issue] = issues;
  const path = issue?.path
    ?.map((part) => String(typeof part === 'object' ? part.key : part))
    .join('.');
  return `${path ? ` at ${path}` : ''}: ${issue?.message ?? 'for no reason given'}`;
}
