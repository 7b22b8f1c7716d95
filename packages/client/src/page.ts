/** What a browser's page has, and other places where this runs may not. */
interface Page {
  readonly document?: { readonly visibilityState: string };
  readonly sessionStorage?: PageStorage;
  readonly addEventListener?: (event: string, listener: () => void) => void;
  readonly removeEventListener?: (event: string, listener: () => void) => void;
}

/** The part of `Storage` that is used. */
export interface PageStorage {
  getItem(key: string): string | null;
  setItem(key: string, value: string): void;
  removeItem(key: string): void;
}

// Seen as what may be there, whichever library a program compiles with.
const page = globalThis as unknown as Page;

/** Listens to an event of the page, where there is one. Returns what stops that. */
export function onPage(event: string, listener: () => void): () => void {
  page.addEventListener?.(event, listener);
  return () => page.removeEventListener?.(event, listener);
}

/** Whether somebody may look at the page. */
export function isShown(): boolean {
  return page.document?.visibilityState === 'visible';
}

/** Answers the page's session storage, or undefined where there is none or it is forbidden. */
export function pageStorage(): PageStorage | undefined {
  try {
    return page.sessionStorage;
  } catch {
    // A page without an origin, or a browser that is told to keep nothing.
    return undefined;
  }
}
