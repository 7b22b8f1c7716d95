import { type GraphFrame, Replica } from '../replica.ts';
import { trpc } from './client.ts';
import { draw } from './draw.ts';
import { lendHands } from './hands.ts';

const AGAIN_MS = 1_000;

const svg = find<SVGSVGElement>('graph');
const note = find<HTMLTextAreaElement>('note');
let selected: string | undefined;
let relating = false;
let frames = 0;
let loads = 0;

const replica = new Replica(load);

trpc.feed.subscribe(undefined, {
  onConnectionStateChange: ({ state }) => show(state === 'pending' ? 'live' : state),
  onData: ({ data }) => void take(data),
  onError: ({ message }) => show(message),
});

async function take(frame: GraphFrame): Promise<void> {
  if ('kind' in frame) frames += 1;
  await replica.receive(frame);
  redraw();
}

/** Loads the graph as a whole, once, when the feed first stands. */
async function load() {
  for (;;) {
    try {
      loads += 1;
      return await trpc.load.query();
    } catch {
      await new Promise((resolve) => setTimeout(resolve, AGAIN_MS));
    }
  }
}

lendHands(svg, {
  select(id) {
    if (relating && selected !== undefined && selected !== id) relate(selected, id);
    else void choose(id);
    relating = false;
    redraw();
  },
  drop: (id, x, y) => act(trpc.update.mutate({ id, x, y })),
});

async function choose(id: string): Promise<void> {
  if (selected === id) return;
  selected = id;
  note.value = replica.graph.entities.get(id)?.metadata.note ?? '';
  const draft = await trpc.draftOf.query(id).catch(() => null);
  if (draft !== null && selected === id) note.value = draft;
}

function relate(from: string, to: string): void {
  const type = replica.graph.entities.get(to)?.type === 'place' ? 'visits' : 'knows';
  act(trpc.relate.mutate({ id: `${from}-${to}`, type, from, to }));
}

find('add').onclick = () => {
  const id = crypto.randomUUID();
  const type = Math.random() < 0.7 ? 'person' : 'place';
  const metadata = {
    label: `${type} ${id.slice(0, 4)}`,
    note: '',
    tags: [],
    x: 40 + Math.random() * (svg.clientWidth - 80),
    y: 40 + Math.random() * (svg.clientHeight - 100),
  };
  act(trpc.add.mutate({ id, type, metadata }));
};
find('relate').onclick = () => {
  relating = selected !== undefined;
  redraw();
};
find('remove').onclick = () => {
  if (selected !== undefined) act(trpc.remove.mutate(selected));
  selected = undefined;
};
// While it is typed the note is working state: saved with every key, and told to nobody.
note.oninput = () => {
  if (selected !== undefined) act(trpc.saveDraft.mutate({ id: selected, note: note.value }));
};
note.onchange = () => {
  if (selected !== undefined) act(trpc.update.mutate({ id: selected, note: note.value }));
};

function act(done: Promise<unknown>): void {
  done.catch((error: Error) => show(error.message));
}

function redraw(): void {
  draw(svg, replica.graph, selected);
  const { entities, relations } = replica.graph;
  find('counts').textContent =
    `${entities.size} nodes, ${relations.size} relations, as of commit ${replica.generation}`;
  find('frames').textContent =
    `${frames} frames applied, the graph loaded ${loads} time${loads === 1 ? '' : 's'}`;
  find('relate').textContent = relating ? 'Relate to: choose another' : 'Relate';
}

function show(state: string): void {
  find('state').textContent = state;
}

function find<Found extends Element = HTMLElement>(id: string): Found {
  const found = document.getElementById(id);
  if (found === null) throw new Error(`the page has no #${id}`);
  // The page says which element has the id.
  return found as Element as Found;
}
