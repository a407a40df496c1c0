import type { Labels, Metric } from "./definitions.ts";

/** The label value that replaces all values beyond the limit. */
const other = "other";

/** Maximum distinct values of a metric's label, and maximum length of one, in characters. */
const [maxValues, maxLength] = [100, 128];

/** Bounds the values of labels. A called agent chooses its own name, and a step can have any name. */
export class Caps {
  readonly #known = new Map<Metric, Map<string, Set<string>>>();

  /** Replaces values beyond the limit by `other`. */
  bound(metric: Metric, labels: Labels): Labels {
    let bounded: Record<string, string> | undefined;
    for (const name of Object.keys(labels)) {
      const value = labels[name] ?? "";
      if (!this.#admits(metric, name, value)) (bounded ??= { ...labels })[name] = other;
    }
    return bounded ?? labels;
  }

  #admits(metric: Metric, name: string, value: string): boolean {
    let names = this.#known.get(metric);
    if (names === undefined) this.#known.set(metric, (names = new Map<string, Set<string>>()));
    let values = names.get(name);
    if (values === undefined) names.set(name, (values = new Set()));
    if (values.has(value)) return true;
    if (values.size >= maxValues || value.length > maxLength) return false;
    values.add(value);
    return true;
  }
}
