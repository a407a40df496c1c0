import { BoundedMap, memoryOf } from "@parley/a2a/internal/base/bounded-map";
import type { A2AError } from "@parley/a2a/internal/model/index";
import { attribute } from "../names.ts";
import type { Instruments, Labels, Metric, Recorder } from "./definitions.ts";

/* Caches recorders, so that a message neither creates labels nor looks up their series. */

/** Maximum cached recorders of a kind. More values of a label are likely an attack, so further recorders are not cached. */
const maxKept = 500;

/** A cache by label values. */
export function kept<T>(): BoundedMap<T> {
  return new BoundedMap<T>({ bytes: 1 << 20, entries: maxKept, bytesOf: (key) => memoryOf(key) });
}

/** The recorders of a metric whose only label is the name of an agent. */
export function byAgent(instruments: Instruments, metric: Metric): (name: string) => Recorder {
  const recorders = kept<Recorder>();
  return (name) => {
    const known = recorders.get(name);
    if (known !== undefined) return known;
    const recorder = instruments.recorder(metric, { [attribute.agentName]: name });
    recorders.set(name, recorder);
    return recorder;
  };
}

/** Adds the code of the error, if any, to the labels. */
export function failing(labels: Labels, error: A2AError | undefined): Labels {
  return error === undefined ? labels : { ...labels, [attribute.error]: error.code };
}

/** Seconds since this value of `performance.now()`. */
export function secondsSince(since: number): number {
  return (performance.now() - since) / 1000;
}
