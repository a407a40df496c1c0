import {
  metrics as api,
  type BatchObservableCallback,
  type Counter,
  type Histogram,
  type Meter,
  type MeterProvider,
  type Observable,
} from "@opentelemetry/api";
import { scope } from "../names.ts";
import { Caps } from "./caps.ts";
import { read, type Instruments, type Labels, type Metric, type Recorder } from "./definitions.ts";
import { Readings } from "./readings.ts";

/** The instruments of a meter. Created with their first value, because the SDK may start after the agent is created. */
export function meterInstruments(provider: MeterProvider | undefined): Instruments {
  const caps = new Caps();
  let meter: Meter | undefined;
  const meterOf = (): Meter => (meter ??= (provider ?? api).getMeter(scope));
  const made = new Map<Metric, Counter | Histogram>();
  const readings = new Readings();
  let stop = (): void => {};
  const instrumentOf = (metric: Metric): Counter | Histogram => {
    const known = made.get(metric);
    if (known !== undefined) return known;
    const { name, unit, description, buckets } = metric;
    const advice = buckets && { advice: { explicitBucketBoundaries: [...buckets] } };
    const instrument =
      metric.kind === "histogram"
        ? meterOf().createHistogram(name, { unit, description, ...advice })
        : meterOf().createCounter(name, { unit, description });
    made.set(metric, instrument);
    return instrument;
  };
  return {
    recorder(metric: Metric, labels: Labels): Recorder {
      const instrument = instrumentOf(metric);
      const bounded = caps.bound(metric, labels);
      return "record" in instrument
        ? (value) => instrument.record(value, bounded)
        : (value) => instrument.add(value, bounded);
    },
    collect(reading) {
      const remove = readings.add(reading);
      if (readings.size === 1) stop = observe(meterOf(), readings);
      return () => {
        remove();
        if (readings.size === 0) stop();
      };
    },
  };
}

/** Observes all servers with one callback: of several callbacks for one gauge, the SDK keeps only the last value. */
function observe(meter: Meter, readings: Readings): () => void {
  const observables = new Map<Metric, Observable>(
    read.map((metric) => {
      const { name, unit, description } = metric;
      const options = { unit, description };
      const isCounter = metric.kind === "counter";
      return [
        metric,
        isCounter ? meter.createObservableCounter(name, options) : meter.createObservableGauge(name, options),
      ];
    }),
  );
  const all = [...observables.values()];
  const callback: BatchObservableCallback = async (result) => {
    for (const [metric, samples] of await readings.read()) {
      const observable = observables.get(metric);
      if (observable === undefined) continue;
      for (const { value, labels } of samples) result.observe(observable, value, labels);
    }
  };
  meter.addBatchObservableCallback(callback, all);
  return () => meter.removeBatchObservableCallback(callback, all);
}
