import { readFile } from 'node:fs/promises';

/** The user whom SECURITY.md describes, but for the prefix of the keys. */
export const USER = { username: 'feeds', password: 'PASSWORD' } as const;

/** Reads the rules that SECURITY.md gives that user, for ACL SETUSER. */
export async function userRules(prefix: string): Promise<string[]> {
  const text = await readFile(new URL('../../../SECURITY.md', import.meta.url), 'utf8');
  const [, rules] =
    new RegExp(`^ACL SETUSER ${USER.username} ([^\`]+)^\`\`\``, 'm').exec(text) ?? [];
  if (rules === undefined) throw new Error('SECURITY.md has no rules');
  return rules.replaceAll('brokerfeed:', `${prefix}:`).trim().split(/\s+/);
}
