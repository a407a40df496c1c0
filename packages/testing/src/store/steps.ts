import type { AppendItem, ListQuery, Scope } from "@parley/server/internal/store/index";

/** The names in random histories. */
export const owners = [
  { agent: "a", owner: "alice" },
  { agent: "a", owner: "bob" },
  { agent: "b", owner: "alice" },
] as const;
export const scopes: readonly Scope[] = [...owners, { agent: "a" }, { agent: "b" }];
export const taskIds = ["t1", "t2", "t3", "t\u0000\ud800"] as const;
export const contextIds = ["c1", "c2"] as const;
export const features = ["f", "g"] as const;
export const featureKeys = ["k1", "k\u0000\ud800"] as const;
export const keys = ["k1", "k2", "k\u0000"] as const;

/** One step of a history. */
export type Step =
  | { readonly step: "append"; readonly items: readonly AppendItem[] }
  | { readonly step: "sweep"; readonly now: number; readonly deleteBefore?: number; readonly compactBefore?: number }
  | { readonly step: "list"; readonly scope: Scope; readonly query: ListQuery }
  | { readonly step: "crash" };
