import { trace, type MeterProvider, type TracerProvider } from "@opentelemetry/api";
import { checkOptions, invalidParams, type OptionNames } from "@parley/a2a/internal/model/index";
import type { Observer } from "@parley/a2a/internal/protocol/index";
import { metricsObserver } from "./metrics/observer.ts";
import { meterInstruments } from "./metrics/otel.ts";
import { scope } from "./names.ts";
import { observers } from "./observers.ts";
import type { Redact } from "./traces/content.ts";
import { Tracing } from "./traces/observer.ts";

/** Options of `telemetry()`. */
export interface TelemetryOptions {
  /** Where spans go; `false`: there are none. Default: the provider that your SDK has registered. */
  readonly tracerProvider?: TracerProvider | false;
  /** Where metrics go; `false`: there are none. Default: the provider that your SDK has registered. */
  readonly meterProvider?: MeterProvider | false;
  /**
   * Whether there are spans of agents: `invoke_agent` for turns and delegations, `execute_tool` for steps. `false` where the framework
   * of the agent makes its own, so that they are not counted twice. Default true.
   */
  readonly agentSpans?: boolean;
  /**
   * How calls look within an instrumented server. `2026-10`: the span of the transport gets the attributes and the name of the call.
   * `2026-05`: the call is a span of its own below it. Both are drafts of the A2A convention. Default `2026-10`.
   */
  readonly convention?: "2026-10" | "2026-05";
  /**
   * Exports what users and agents have written, on `invoke_agent` spans alone: a function that removes what nobody may see. It is called with
   * each text and who wrote it, and returns what to export; `undefined`: nothing. Default: no content is exported.
   *
   * @example
   * ```ts
   * const observer = telemetry({ content: (text) => text.replaceAll(/\d{4,}/g, "…") });
   * ```
   */
  readonly content?: Redact;
  /** Whether spans of turns name the caller (`user.id`). Default false. */
  readonly userIds?: boolean;
}

/**
 * Traces and measures what a server and its clients do, by OpenTelemetry. Start your SDK before; without one it does nothing. Pass it to
 * a server as `observer`, and to a client as `observer` and to `observeRequests`.
 *
 * @throws A2AError `InvalidParams` for options that are wrong.
 *
 * @example
 * ```ts
 * await serve(agent, { observer: telemetry() });
 * ```
 */
export function telemetry(options: TelemetryOptions = {}): Observer {
  checkOptions("telemetry()", options, names);
  const {
    tracerProvider,
    meterProvider,
    agentSpans = true,
    userIds = false,
    content,
    convention = "2026-10",
  } = options;
  if (convention !== "2026-10" && convention !== "2026-05")
    throw invalidParams([{ field: "convention", description: 'must be "2026-10" or "2026-05"' }]);
  if (content !== undefined && typeof content !== "function")
    throw invalidParams([{ field: "content", description: "must be a function that redacts, such as (text) => text" }]);
  const enriches = convention === "2026-10";
  const tracing = (given: TracerProvider | undefined): Observer =>
    new Tracing({ tracer: (given ?? trace).getTracer(scope), enriches, agentSpans, userIds, content });
  return observers(
    ...(tracerProvider === false ? [] : [tracing(tracerProvider)]),
    ...(meterProvider === false ? [] : [metricsObserver(meterInstruments(meterProvider))]),
  );
}

const names: OptionNames<TelemetryOptions> = {
  tracerProvider: 1,
  meterProvider: 1,
  agentSpans: 1,
  convention: 1,
  content: 1,
  userIds: 1,
};
