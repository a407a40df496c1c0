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
  /** Receives spans; `false` disables tracing. Default: the provider that your SDK has registered. */
  readonly tracerProvider?: TracerProvider | false;
  /** Receives metrics; `false` disables metrics. Default: the provider that your SDK has registered. */
  readonly meterProvider?: MeterProvider | false;
  /**
   * Whether to create agent spans: `invoke_agent` for turns and delegations, `execute_tool` for steps. Set to `false` if the agent's framework
   * creates its own; otherwise they count twice. Default true.
   */
  readonly agentSpans?: boolean;
  /**
   * How calls appear in an instrumented server. `2026-10`: the transport's span gets the attributes and the name of the call.
   * `2026-05`: the call is a child span of it. Both are drafts of the A2A convention. Default `2026-10`.
   */
  readonly convention?: "2026-10" | "2026-05";
  /**
   * Exports the content of messages, only on `invoke_agent` spans, after this function has redacted it. Called with each text and the role of
   * its author. Returns the text to export; `undefined`: nothing. Default: no content is exported.
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
 * Records traces and metrics of a server and its clients with OpenTelemetry. Start your SDK first; without one it does nothing. Pass it to
 * a server as `observer`, and to a client as `observer` and to `observeRequests`.
 *
 * @throws A2AError `InvalidParams` for invalid options.
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
