import type { A2AError } from "@parley/a2a/internal/model/index";
import type { Ended, Observation, ObservedAnswer, OperationName } from "@parley/a2a/internal/protocol/index";
import { ByOperation } from "../by-operation.ts";
import { attribute } from "../names.ts";
import type { CallMetrics, Instruments, Labels, Recorder } from "./definitions.ts";
import { failing, kept, secondsSince } from "./recorders.ts";

/* Metrics for the calls of a server and the requests of a client. */

/** The recorders of one kind of call. Created with the first value, because the SDK may start later. */
class CallSeries {
  readonly #instruments: Instruments;
  readonly #metrics: CallMetrics;
  readonly #labels: Labels;
  #duration: Recorder | undefined;
  #first: Recorder | undefined;
  #events: Recorder | undefined;

  constructor(instruments: Instruments, to: CallMetrics, labels: Labels) {
    this.#instruments = instruments;
    this.#metrics = to;
    this.#labels = labels;
  }

  get duration(): Recorder {
    return (this.#duration ??= this.#instruments.recorder(this.#metrics.duration, this.#labels));
  }

  get first(): Recorder {
    return (this.#first ??= this.#instruments.recorder(this.#metrics.first, this.#labels));
  }

  get events(): Recorder {
    return (this.#events ??= this.#instruments.recorder(this.#metrics.events, this.#labels));
  }

  /** The recorders for calls of this kind that fail with this error. */
  failing(error: A2AError): CallSeries {
    return new CallSeries(this.#instruments, this.#metrics, failing(this.#labels, error));
  }
}

/** Measures the calls of a server or the requests of a client. */
export class CallRecorders {
  readonly #instruments: Instruments;
  readonly #metrics: CallMetrics;
  readonly #ofAgents = kept<ByOperation<CallSeries>>();
  readonly #ofNone = this.#seriesOf(undefined);

  constructor(instruments: Instruments, to: CallMetrics) {
    this.#instruments = instruments;
    this.#metrics = to;
  }

  measured(operation: OperationName, version: string, agent: string | undefined): Ended | MeasuredStream {
    let all = agent === undefined ? this.#ofNone : this.#ofAgents.get(agent);
    if (all === undefined) this.#ofAgents.set(agent ?? "", (all = this.#seriesOf(agent)));
    const series = all.of(operation, version);
    if (operation === "SendStreamingMessage" || operation === "SubscribeToTask") return new MeasuredStream(series);
    const since = performance.now();
    return (error) => (error === undefined ? series : series.failing(error)).duration(secondsSince(since));
  }

  #seriesOf(agent: string | undefined): ByOperation<CallSeries> {
    return new ByOperation((operation, version) => {
      const labels = {
        [attribute.method]: operation,
        [attribute.version]: version,
        ...(agent !== undefined && { [attribute.agentName]: agent }),
      };
      return new CallSeries(this.#instruments, this.#metrics, labels);
    });
  }
}

/** A call with a stream as its answer. */
class MeasuredStream implements Observation {
  readonly #series: CallSeries;
  readonly #since = performance.now();
  #events = 0;

  constructor(series: CallSeries) {
    this.#series = series;
  }

  answered({ events }: ObservedAnswer): void {
    if (this.#events === 0) this.#series.first(secondsSince(this.#since));
    this.#events += events;
  }

  end(error?: A2AError): void {
    const series = error === undefined ? this.#series : this.#series.failing(error);
    series.duration(secondsSince(this.#since));
    series.events(this.#events);
  }
}
