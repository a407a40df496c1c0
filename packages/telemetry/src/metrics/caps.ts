import type { Labels, Metric } from "./definitions.ts";

/** The value of a label in place of all those beyond the limit. */
const other = "other";

/** How many values a label of a metric may have, and how long one may be, in characters. */
const [maxValues, maxLength] = [100, 128];

/** Bounds the values of labels: an agent that is called says its own name, and a step has any name. */
export class Caps {
  readonly #known = new Map<Metric, Map<string, Set<string>>>();

  /** The same labels, with `other` for values beyond the limit. */
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
