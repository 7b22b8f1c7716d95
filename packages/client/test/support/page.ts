/** What a page has and Node has not: events of its own. Ends with its scope. */
export interface FakePage extends Disposable {
  /** Listeners that are there now. */
  readonly listeners: number;
  tell(event: string): void;
  /** Shows or hides it. */
  show(visibilityState: 'visible' | 'hidden'): void;
}

/** Gives this process the events of a page. */
export function fakePage(): FakePage {
  const { target, count } = countListeners(new EventTarget());
  const document = { visibilityState: 'visible' };
  const given = {
    document,
    addEventListener: (event: string, listener: () => void) =>
      target.addEventListener(event, listener),
    removeEventListener: (event: string, listener: () => void) =>
      target.removeEventListener(event, listener),
  };
  const names = Object.keys(given) as (keyof typeof given)[];
  const before = names.map((name) => Object.getOwnPropertyDescriptor(globalThis, name));
  for (const name of names)
    Object.defineProperty(globalThis, name, { configurable: true, value: given[name] });
  const tell = (event: string): void => void target.dispatchEvent(new Event(event));
  return {
    get listeners() {
      return count();
    },
    tell,
    show(visibilityState) {
      document.visibilityState = visibilityState;
      tell('visibilitychange');
    },
    [Symbol.dispose]() {
      for (const [at, name] of names.entries()) {
        const was = before[at];
        if (was === undefined) Reflect.deleteProperty(globalThis, name);
        else Object.defineProperty(globalThis, name, was);
      }
    },
  };
}

type Listener = Parameters<EventTarget['addEventListener']>[1];

/** Counts the listeners that are added to a target and not removed. */
export function countListeners<Target extends EventTarget>(
  target: Target,
): { readonly target: Target; count(): number } {
  const there: [event: string, listener: Listener][] = [];
  const { addEventListener, removeEventListener } = target;
  target.addEventListener = (event: string, listener: Listener) => {
    there.push([event, listener]);
    addEventListener.call(target, event, listener);
  };
  target.removeEventListener = (event: string, listener: Listener) => {
    const at = there.findIndex(([name, added]) => name === event && added === listener);
    if (at >= 0) there.splice(at, 1);
    removeEventListener.call(target, event, listener);
  };
  return { target, count: () => there.length };
}
