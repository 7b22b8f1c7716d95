import type { Spread, Summary } from './summary.ts';

/** The name of each system in tables. */
const LABELS: Readonly<Record<string, string>> = {
  'limit-batch': 'limit: frames built once, one write per socket and reply',
  'limit-frame': 'limit: raw `ws`, pre-framed, one write per entry',
  'limit-string': 'limit: raw `ws.send(string)`',
  'limit-sse': 'limit: bare `res.write(text)`',
  feed: '**brokerfeed, `attachFeeds`**',
  'feed-stock': '**brokerfeed on the stock WebSocket adapter**',
  'feed-sse': '**brokerfeed, `withFeeds`**',
  'feed-stock-sse': '**brokerfeed on the stock HTTP adapter**',
  socketio: 'Socket.IO + redis-streams-adapter',
  orpc: 'oRPC publisher (ioredis)',
  graphql: 'graphql-ws + graphql-redis-subscriptions',
  'trpc-shared': 'stock tRPC, one shared reader',
  'trpc-reader': 'stock tRPC, a reader per subscriber',
  'trpc-shared-sse': 'stock tRPC over SSE, one shared reader',
  'trpc-bare': 'stock tRPC, a bare iterator',
  'call-bare': 'a bare call of a function',
  'call-announce': '**`announce`**, nobody watches',
  'call-announce-elsewhere': '… another topic is watched',
  'call-announce-heard': '… one watches, and does not read',
  'call-encode': 'the encoding of the value alone',
  'call-async': 'a bare call of an async function, awaited',
  'call-change': '**`append` of `localChanges`**, no `onChange`',
  'call-change-heard': '… one `onChange`',
  'call-append': '**`append` to a log**, nobody subscribed',
  'call-append-watched': '… one watches, and does not read',
  'call-change-log': '**`append` of `changes`** to a log, no `onChange`',
};

/**
 * Prints a scenario as a table of Markdown: medians, with the range where there were repeats. The ratio is that of the
 * first figure, to the row that says 1x.
 */
export function tableOf(summary: Summary): string {
  const { scenario, systems } = summary;
  const { columns, reference } = scenario;
  const [first] = columns;
  const head = ['system', ...columns.map(({ title }) => title), 'ratio', ''];
  const rows = systems.map((system) => {
    const cells = columns.map(({ metric }) => spreadText(summary.spread(system, metric)));
    const ratio = first && summary.ratio(system, reference, first.metric);
    return [
      LABELS[system] ?? system,
      ...cells,
      ratio === undefined || !Number.isFinite(ratio) ? '' : `${numberText(ratio)}x`,
      summary.remarks(system).join('; '),
    ];
  });
  return `### ${scenario.name}: ${scenario.title}\n\n${markdown(head, rows)}`;
}

/** Aligns a table of Markdown, so that it is read as well in a terminal. */
export function markdown(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const widths = head.map((title, column) =>
    Math.max(3, ...[title, ...rows.map((row) => row[column] ?? '')].map(({ length }) => length)),
  );
  const line = (cells: readonly string[]): string =>
    `| ${widths.map((width, column) => (cells[column] ?? '').padEnd(width)).join(' | ')} |`;
  const rule = widths.map((width) => '-'.repeat(width));
  return [line(head), line(rule), ...rows.map(line)].join('\n');
}

/** Three digits are as much as a bench knows. */
export function numberText(value: number): string {
  if (!Number.isFinite(value)) return '–';
  if (Math.abs(value) < 100) return String(Number(value.toPrecision(3)));
  return Math.round(value).toLocaleString('en-US');
}

function spreadText(spread: Spread | undefined): string {
  if (spread === undefined) return '';
  const { min, median, max } = spread;
  if (min === max) return numberText(median);
  return `${numberText(median)} (${numberText(min)}–${numberText(max)})`;
}
