/**
 * The processes that use a store, by the names that they have in their leases. One short statement for each process and heartbeat takes the
 * place of the renewal of each lease: a process that runs a thousand tasks costs what an idle one costs.
 */
export interface StoreNodes {
  /**
   * Notes that a process is alive. Resolves to all processes that are known, with this one. It need not survive a crash of the store: who is
   * not known is asked again, or is given up some time later.
   *
   * @param within - Milliseconds until the answer must be there. A store with another way to its database tries that then, for as long
   * again, and rejects where it does not answer either. Default: as long as any call may take.
   */
  beat(node: string, within?: number): Promise<readonly StoreNode[]>;
  /** Forgets processes: one that stops, and those that have been dead for long. */
  forget(nodes: readonly string[]): Promise<void>;
}

/** What is known of a process. */
export interface StoreNode {
  /** Its name. */
  readonly name: string;
  /** A number that changes with each of its heartbeats. */
  readonly beats: number;
  /** How long ago the last one was, in milliseconds on the clock of the store. */
  readonly silent: number;
}
