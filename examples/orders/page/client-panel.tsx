import { useState } from 'react';
import type { BoardClient, Transport } from './board-client.ts';
import { OrderList } from './order-list.tsx';
import { Sparkline } from './sparkline.tsx';
import { type Board, useBoard } from './use-board.ts';

const TRANSPORTS: readonly (readonly [Transport, string])[] = [
  ['ws', 'WebSocket'],
  ['sse', 'SSE'],
];

/** One client: how it is connected, what it counted, and its board. */
export function ClientPanel({ client }: { readonly client: BoardClient }) {
  const board = useBoard(client);
  const [transport, setTransport] = useState(client.transport);
  const [isCut, setCut] = useState(client.line.isCut);

  function choose(chosen: Transport): void {
    client.transport = chosen;
    setTransport(chosen);
    board.resubscribe();
  }

  function cut(chosen: boolean): void {
    client.line.isCut = chosen;
    setCut(chosen);
  }

  const { received, missed, repeated } = board.counts;
  return (
    <section className="client" aria-label={`Client ${client.name}`}>
      <header>
        <h2>Client {client.name}</h2>
        <Standing board={board} isCut={isCut} />
      </header>
      <div className="settings">
        <fieldset>
          <legend>Transport</legend>
          {TRANSPORTS.map(([value, label]) => (
            <label key={value}>
              <input
                type="radio"
                name={`transport-${client.name}`}
                checked={transport === value}
                onChange={() => choose(value)}
              />
              {label}
            </label>
          ))}
        </fieldset>
        <label className="switch">
          <input
            type="checkbox"
            role="switch"
            aria-checked={isCut}
            checked={isCut}
            onChange={({ target }) => cut(target.checked)}
          />
          Cut my connection
        </label>
      </div>
      <dl className="counts">
        <Count name="received" value={received} />
        <Count name="missed" value={missed} isBad={missed > 0} />
        <Count name="repeated" value={repeated} isBad={repeated > 0} />
      </dl>
      <Sparkline total={received} unit="orders" />
      <ol className="log" role="log" aria-label={`What client ${client.name} was told`}>
        {board.log.notes.map(({ key, at, text }) => (
          <li key={key}>
            <time dateTime={at.toISOString()}>{at.toLocaleTimeString('en-GB')}</time> {text}
          </li>
        ))}
      </ol>
      <OrderList orders={board.orders} />
    </section>
  );
}

/** The connection as tRPC has it, and the feed as the link has it. */
function Standing({ board, isCut }: { readonly board: Board; readonly isCut: boolean }) {
  const [mood, text] = describe(board, isCut);
  return (
    <p className="standing" role="status" data-mood={mood}>
      {text}
    </p>
  );
}

function describe(
  { connection, log }: Board,
  isCut: boolean,
): ['good' | 'waiting' | 'bad', string] {
  if (isCut) return ['bad', 'cut off'];
  if (connection === 'error') return ['bad', 'ended by an error'];
  switch (log.standing) {
    case 'attached':
    case 'live':
    // A snapshot is there as soon as it is told of; a fresh start is connecting first.
    case 'gap':
      return connection === 'pending' ? ['good', 'live'] : ['waiting', 'reconnecting'];
    case 'catching-up':
      return ['waiting', 'catching up'];
    case 'outage':
      return ['waiting', 'connected, the log is away'];
    case 'lost':
      return ['waiting', 'reconnecting'];
    case 'waiting':
      return ['waiting', 'connecting'];
    default:
      return log.standing satisfies never;
  }
}

interface CountProps {
  readonly name: string;
  readonly value: number;
  readonly isBad?: boolean;
}

function Count({ name, value, isBad = false }: CountProps) {
  return (
    <div data-bad={isBad}>
      <dt>{name}</dt>
      <dd>{value}</dd>
    </div>
  );
}
