import { defaultStoreBounds, type StoreBounds } from "@parley/a2a/store";

/** `text` is also what comes out of the library at once: `libsql` ends the process over one beyond 536,870,888 characters. */
export interface Bounds extends StoreBounds {
  /** Rows of tasks with more bytes together are read one by one, and not joined by SQLite. */
  readonly join: number;
}

export const defaultBounds: Bounds = { ...defaultStoreBounds, join: 1 << 20 };
