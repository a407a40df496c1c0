/* The rows that an extension keeps with a task, as its hooks read and change them: with a message or an event, and during a turn. */

/**
 * The rows that an extension keeps with a task. Changes are stored in the transaction of what the hook returns, or not at all.
 * Only this extension sees the rows. They are deleted with the task. The store bounds them (`featureBounds`).
 */
export interface TaskRows {
  /**
   * Sets a row. `value` is JSON text. `due`: when somebody has to look at it, in whole milliseconds since the Unix epoch;
   * `Store.dueFeatures` returns the row from then on, under the URI of the extension.
   *
   * @throws TypeError for what the store does not accept, and after the hook has returned.
   */
  set(key: string, value: string, options?: { readonly due?: number }): void;
  /** Deletes a row. Throws as `set` does. */
  delete(key: string): void;
  /**
   * What is stored, in the order in which keys were set first. Empty where the message makes its task. What is set after it is stored only
   * where those rows are still as they were read. Else the hook runs again: of two messages at a time, one comes first.
   */
  read(): Promise<readonly ExtensionRow[]>;
}

/** A row that an extension keeps with a task. */
export interface ExtensionRow {
  /** Its key, unique in its task and extension. */
  readonly key: string;
  /** JSON text. */
  readonly value: string;
  /** When somebody has to look at it, in milliseconds since the Unix epoch. */
  readonly due?: number;
}

/** A change of a row. */
export type RowChange =
  | {
      /** Sets the row. */
      readonly op: "set";
      /** Its key, unique in its task and extension. */
      readonly key: string;
      /** JSON text. */
      readonly value: string;
      /** When somebody has to look at it, in whole milliseconds since the Unix epoch. */
      readonly due?: number;
    }
  | { readonly op: "delete"; readonly key: string };

/** The rows that an extension keeps with the task of a turn, while the agent works. */
export interface TurnRows {
  /** What is stored, in the order in which keys were set first. Empty before the task exists. */
  read(): Promise<readonly ExtensionRow[]>;
  /**
   * Stores changes, in one transaction, and makes the task where there is none. Resolves when they are stored, and with them everything that
   * the agent has yielded before.
   *
   * @throws A2AError `Unavailable` where the turn is over, or another process has taken it over. TypeError for what the store does not accept.
   */
  store(changes: readonly RowChange[]): Promise<void>;
  /**
   * Takes a name for this turn, among all tasks of the agent, whoever owns them: what must be used once, as a nonce. A run that resumes
   * the turn has it still, so it makes the task where there is none, before it takes the name.
   *
   * @param name - At most 512 bytes.
   * @param until - When it may be taken again, in milliseconds since the Unix epoch.
   * @param family - A URI: extensions that say the same one share their names, as versions of one do. Default: that of the extension.
   * @returns `false`: another turn has it.
   */
  claim(name: string, until: number, family?: string): Promise<boolean>;
}
