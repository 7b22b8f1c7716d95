import type { Order } from '../router.ts';
import { type Transport, trpc } from './client.ts';

const ITEMS = [
  'espresso',
  'flat white',
  'cortado',
  'filter coffee',
  'cold brew',
  'cocoa',
  'green tea',
];
const AGAIN_MS = 1_000;

const orders = new Map<string, Order>();
let transport: Transport = 'ws';
/** Of the newest frame; what the next subscription goes on after, on whichever transport. */
let token: string | undefined;
let tokenAt = 0;
let subscription = subscribe();

function subscribe(): { unsubscribe(): void } {
  return trpc.orders.feed.subscribe(
    { lastEventId: token },
    {
      context: { transport },
      onConnectionStateChange: ({ state }) => show(state === 'pending' ? 'live' : state),
      onData({ id, data }) {
        const fresh = token === undefined;
        token = id;
        tokenAt = Date.now();
        if ('snapshot' in data) {
          note(
            `Snapshot (${data.reason}): the place in the log is lost, so the board was loaded again.`,
          );
          orders.clear();
          element('orders').replaceChildren();
          add(data.snapshot);
        } else if ('feed' in data) {
          if (data.feed === 'outage')
            note('The log cannot be read now. The board goes on when it can.');
          if (data.feed === 'live') note('The log can be read again.');
          if (data.feed === 'attached' && fresh) void load();
        } else {
          add([data], 'new');
        }
      },
      // Over WebSockets an error ends the subscription; the next one goes on after the same token.
      onError(error) {
        show('waiting');
        note(error.message);
        if (error.data?.httpStatus !== 503) token = undefined;
        setTimeout(resubscribe, AGAIN_MS);
      },
    },
  );
}

function resubscribe(): void {
  subscription.unsubscribe();
  subscription = subscribe();
}

/** Reads the board from the database, once the feed stands: nothing is placed between the two. */
async function load(): Promise<void> {
  try {
    add(await trpc.orders.recent.query());
  } catch {
    setTimeout(() => void load(), AGAIN_MS);
  }
}

/** Places an order, until it is placed: its id makes a repeated try harmless. */
async function place(order: Order): Promise<void> {
  try {
    await trpc.orders.place.mutate(order);
  } catch {
    setTimeout(() => void place(order), AGAIN_MS);
  }
}

function add(more: readonly Order[], className = ''): void {
  for (const order of more) {
    if (orders.has(order.id)) continue;
    orders.set(order.id, order);
    element('orders').prepend(row(order, className));
  }
  element('count').textContent = String(orders.size);
}

function row(order: Order, className: string): HTMLElement {
  const item = document.createElement('li');
  item.className = className;
  const code = document.createElement('code');
  code.textContent = order.id.slice(0, 8);
  item.append(span(`${order.quantity} ×`), span(order.item), code);
  return item;
}

function span(text: string): HTMLElement {
  const made = document.createElement('span');
  made.textContent = text;
  return made;
}

function show(state: string): void {
  element('state').textContent =
    state === 'live' ? `live over ${transport === 'ws' ? 'WebSocket' : 'SSE'}` : state;
  element('state').dataset.state = state;
}

function note(text: string): void {
  element('note').textContent = text;
}

function element(id: string): HTMLElement {
  const found = document.getElementById(id);
  if (found === null) throw new Error(`the page has no #${id}`);
  return found;
}

element('place').onclick = () => {
  const item = ITEMS[Math.floor(Math.random() * ITEMS.length)] ?? 'coffee';
  void place({ id: crypto.randomUUID(), item, quantity: 1 + Math.floor(Math.random() * 4) });
};
element('kill').onclick = () => {
  // Which one is the proxy's choice: it need not be the one that this page follows.
  fetch('/demo/kill', { method: 'POST' })
    .then(async (response) => note(`Killed ${await response.text()}.`))
    .catch(() => note('No server is there to be killed.'));
};
for (const radio of document.querySelectorAll<HTMLInputElement>('input[name=transport]')) {
  radio.onchange = () => {
    transport = radio.value === 'sse' ? 'sse' : 'ws';
    resubscribe();
  };
}
setInterval(() => {
  if (token !== undefined)
    element('token').textContent = `last token ${Math.round((Date.now() - tokenAt) / 1000)} s old`;
}, 250);
