import type { Broker, Loss } from '@brokerfeed/core';

/** A store that faults can be done to. Made anew for each fault. */
export interface FaultStore extends AsyncDisposable {
  /** Opens a broker on the store, as an instance of a service would: what is done to the store must reach it. The run closes it. */
  open(): Promise<Broker>;
}

/** What a fault may ask of the run that it is done to. */
export interface FaultScene {
  readonly topic: string;
  /** Appends commits, one at a time and in the appender's turn, through a broker of the fault's own where one is given. */
  append(commits: number, through?: Broker): Promise<void>;
  /** Keeps the appender from appending, once its append under way is acknowledged. */
  hold(): Promise<void>;
  /** Lets it append again. */
  goOn(): void;
  /** Resolves when every subscriber that is there, and not paused, has what was acknowledged. */
  delivered(): Promise<void>;
  /** Makes some subscribers that are there take nothing until what it returns is called; who can, says the subscriber. */
  pause(): () => void;
  /** Resolves when every subscriber that is there was told of a loss. */
  told(): Promise<void>;
  /** Lets a fault last, in milliseconds. In a soak, it lasts longer. */
  last(ms: number): Promise<void>;
}

/** One kind of fault, and what the promises make of it. */
export interface Fault<Store extends FaultStore> {
  /**
   * What subscribers notice: nothing, or that they are told of one of these losses.
   */
  readonly expected: 'invisible' | readonly Loss[];
  /**
   * Who must be told: everybody, everybody who was there, or whoever misses an entry. Those who were away may stand before
   * the loss, or come back to instances that still have in memory what the log has lost.
   * @default 'all'
   */
  readonly told?: 'all' | 'there' | 'missing';
  /** Does the fault, and ends it. Appends and deliveries go on meanwhile. */
  inject(store: Store, scene: FaultScene): Promise<void>;
}

/** Faults by their names. */
export type Faults<Store extends FaultStore> = Readonly<Record<string, Fault<Store>>>;
