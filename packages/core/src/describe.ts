const LONGEST_QUOTE = 60;

/** Describes a value for an error message: its kind and, where that is short and printable, the value itself. */
export function describe(value: unknown): string {
  switch (typeof value) {
    case 'string':
      if (value === '') return 'an empty string';
      return value.length <= LONGEST_QUOTE
        ? JSON.stringify(value)
        : `a string of ${value.length} characters`;
    case 'number':
    case 'bigint':
    case 'boolean':
      return `the ${typeof value} ${value}`;
    case 'function':
      return 'a function';
    case 'symbol':
      return 'a symbol';
    case 'undefined':
      return 'undefined';
    default:
      if (value === null) return 'null';
      return Array.isArray(value) ? `an array of ${value.length}` : 'an object';
  }
}
