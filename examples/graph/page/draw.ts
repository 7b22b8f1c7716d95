import type { Graph, GraphEntity, GraphRelation } from '../graph.ts';

const SVG = 'http://www.w3.org/2000/svg';

/** Draws a graph into an SVG element, anew each time: it is small. */
export function draw(svg: SVGSVGElement, graph: Graph, selected: string | undefined): void {
  const edges = [...graph.relations.values()].flatMap((relation) => edge(relation, graph));
  const nodes = [...graph.entities.values()].map((entity) => node(entity, entity.id === selected));
  svg.replaceChildren(...edges, ...nodes);
}

/** Moves a drawn node. */
export function place(group: Element, x: number, y: number): void {
  group.setAttribute('transform', `translate(${x} ${y})`);
}

function edge({ id, from, to, type, metadata }: GraphRelation, graph: Graph): Element[] {
  const a = graph.entities.get(from)?.metadata;
  const b = graph.entities.get(to)?.metadata;
  // An end may be gone already where the rest of a commit is still to come.
  if (a === undefined || b === undefined) return [];
  const line = element('line', { 'data-relation': id, class: type });
  for (const [attribute, value] of Object.entries({ x1: a.x, y1: a.y, x2: b.x, y2: b.y }))
    line.setAttribute(attribute, String(value));
  line.setAttribute('stroke-width', String(1 + metadata.weight));
  return [line];
}

function node({ id, type, metadata }: GraphEntity, isSelected: boolean): Element {
  const group = element('g', { 'data-entity': id, class: isSelected ? `${type} selected` : type });
  place(group, metadata.x, metadata.y);
  const label = element('text', { y: '34' });
  label.textContent = metadata.note === '' ? metadata.label : `${metadata.label}: ${metadata.note}`;
  group.append(element('circle', { r: '16' }), label);
  return group;
}

function element(name: string, attributes: Readonly<Record<string, string>>): SVGElement {
  const made = document.createElementNS(SVG, name) as SVGElement;
  for (const [attribute, value] of Object.entries(attributes)) made.setAttribute(attribute, value);
  return made;
}
