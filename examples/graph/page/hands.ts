import { place } from './draw.ts';

/** What the page does with nodes. */
export interface Hands {
  select(id: string): void;
  /** It was dragged, and let go there. */
  drop(id: string, x: number, y: number): void;
}

const MARGIN_PX = 24;

/** Lets people choose and drag nodes. It listens at the whole drawing, since nodes are drawn anew when the graph changes. */
export function lendHands(svg: SVGSVGElement, hands: Hands): void {
  let held: { readonly id: string; moved: boolean } | undefined;
  const within = (at: number, size: number): number =>
    Math.min(Math.max(at, MARGIN_PX), size - MARGIN_PX * 2);
  const pointOf = ({ clientX, clientY }: PointerEvent): [number, number] => {
    const { left, top, width, height } = svg.getBoundingClientRect();
    return [within(clientX - left, width), within(clientY - top, height)];
  };
  svg.onpointerdown = (event) => {
    const id = (event.target as Element).closest<SVGElement>('[data-entity]')?.dataset.entity;
    if (id === undefined) return;
    held = { id, moved: false };
    svg.setPointerCapture(event.pointerId);
    hands.select(id);
  };
  svg.onpointermove = (event) => {
    if (held === undefined) return;
    held.moved = true;
    const group = svg.querySelector(`[data-entity="${CSS.escape(held.id)}"]`);
    if (group !== null) place(group, ...pointOf(event));
  };
  svg.onpointerup = (event) => {
    const dropped = held;
    held = undefined;
    if (dropped?.moved) hands.drop(dropped.id, ...pointOf(event));
  };
}
