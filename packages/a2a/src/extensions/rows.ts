import type { ExtensionRow, TaskRows } from "../protocol/index.ts";

/** A change of a row, under the URI of the extension that wants it. */
export type RowChange = {
  readonly feature: string;
  /** The row as it must be when the change is stored. Absent: however it is. */
  readonly if?: Pick<ExtensionRow, "value" | "due"> | null;
} & (
  | { readonly op: "set"; readonly key: string; readonly value: string; readonly due?: number }
  | { readonly op: "delete"; readonly key: string }
);

/** Where the rows of extensions go, and come from. */
export interface RowStore {
  /** Takes a change. Throws a `TypeError` for what the store does not accept. */
  keep(change: RowChange): void;
  /** The rows of an extension, by its URI. */
  read(feature: string): Promise<readonly ExtensionRow[]>;
}

/** The rows of an extension while its hook runs. */
export interface HookRows {
  /** For the hook. */
  readonly changes: Omit<TaskRows, "read">;
  /** The hook is over: a later change would be stored with nothing. */
  readonly end: () => void;
  /** Keeps the changes that were held back. Throws as `set` does. */
  readonly commit: () => void;
}

/** `held`: the changes are kept only by `commit`, so that a hook that fails and is left out leaves none. */
export function rowsOf(feature: string, { keep }: Pick<RowStore, "keep">, held: boolean): HookRows {
  let over = false;
  const waiting: RowChange[] = [];
  const change = (wanted: RowChange): void => {
    if (over) throw new TypeError("The hook has returned: rows are set before that");
    if (held) waiting.push(wanted);
    else keep(wanted);
  };
  return {
    changes: {
      set: (key, value, { due } = {}) => change({ feature, op: "set", key, value, ...(due !== undefined && { due }) }),
      delete: (key) => change({ feature, op: "delete", key }),
    },
    end() {
      over = true;
    },
    commit() {
      for (const wanted of waiting) keep(wanted);
    },
  };
}
