import { readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

/** The folder of the repository. */
export const ROOT: string = fileURLToPath(new URL('../..', import.meta.url));

/** Reads a file of the repository. */
export function readText(path: string): string {
  return readFileSync(join(ROOT, path), 'utf8');
}

/** Lists the files below a folder of the repository, by their paths in it. Leaves out what tools put there. */
export function filesBelow(folder: string): string[] {
  return readdirSync(join(ROOT, folder), { withFileTypes: true }).flatMap((entry) => {
    if (/^(node_modules|dist|coverage|\..*)$/.test(entry.name)) return [];
    const path = join(folder, entry.name);
    return entry.isDirectory() ? filesBelow(path) : [path];
  });
}

/** Lists the documents. */
export function documents(): string[] {
  return filesBelow('.').filter((path) => path.endsWith('.md'));
}

/** Tells whether a path of the repository leads to a file or folder. */
export function isThere(path: string): boolean {
  return statSync(join(ROOT, path), { throwIfNoEntry: false }) !== undefined;
}

/** Answers the text below a heading, up to the next one of its level or above. */
export function sectionOf(text: string, heading: string): string {
  const lines = proseLines(text);
  const start = lines.indexOf(heading);
  if (start < 0) throw new Error(`there is no heading "${heading}"`);
  const level = heading.indexOf(' ');
  const length = lines
    .slice(start + 1)
    .findIndex((line) => new RegExp(`^#{1,${level}} `).test(line));
  const all = text.split('\n').slice(start + 1);
  return all.slice(0, length < 0 ? undefined : length).join('\n');
}

/** Lists the headings of a level, such as `###`, without their marks. */
export function headingsOf(text: string, level: string): string[] {
  return proseLines(text).flatMap((line) =>
    line.startsWith(`${level} `) ? [line.slice(level.length + 1)] : [],
  );
}

/** Lists the code blocks of a language. */
export function codeBlocks(text: string, language: string): string[] {
  const fence = new RegExp(`^\`\`\`${language}\\n([\\s\\S]*?)^\`\`\`$`, 'gm');
  return [...text.matchAll(fence)].map(([, code]) => code as string);
}

/** The lines of a document, those of its code blocks empty. */
function proseLines(text: string): string[] {
  let inCode = false;
  return text.split('\n').map((line) => {
    const isFence = line.startsWith('```');
    if (isFence) inCode = !inCode;
    return inCode || isFence ? '' : line;
  });
}

/** The links of a document that lead into the repository, and its anchors, as they stand there. */
export function linksOf(text: string): string[] {
  const links = proseLines(text).flatMap((line) => [...line.matchAll(/\]\(([^)\s]+)\)/g)]);
  return links.map(([, target]) => target as string).filter((target) => !/^[a-z]+:/.test(target));
}

/** The anchors that GitHub gives the headings of a document. */
export function anchorsOf(text: string): string[] {
  return proseLines(text)
    .filter((line) => /^#+ /.test(line))
    .map((line) =>
      line
        .replace(/^#+ /, '')
        .toLowerCase()
        .replace(/[^\p{L}\p{N} _-]/gu, '')
        .replaceAll(' ', '-'),
    );
}
