/**
 * Metrics for Prometheus, without OpenTelemetry.
 * @packageDocumentation
 */

import { checkOptions, type OptionNames } from "@parley/a2a/internal/model/index";
import type { Observer } from "@parley/a2a/internal/protocol/index";
import type { RouteMount } from "@parley/server";
import { metricsObserver } from "../metrics/observer.ts";
import { Registry } from "./registry.ts";

/** Options of `prometheus()`. */
export interface PrometheusOptions {
  /** Path of the metrics below `publicUrl`. Default `/metrics`. */
  readonly path?: string;
  /** Who may read the metrics: callers that the server's authenticator accepts, or anyone. Default `"authenticated"`. */
  readonly access?: RouteMount["access"];
}

/** An observer that records metrics, and a route that serves them. */
export interface PrometheusMetrics extends Observer {
  /** Serves the metrics. For the option `routes` of a server. */
  readonly route: RouteMount;
  /** Returns the metrics in the Prometheus text format, for your own server. */
  text(): Promise<string>;
}

/**
 * Records metrics of a server and its clients for Prometheus. A label has at most 100 values; further values become `other`.
 *
 * @example
 * ```ts
 * const metrics = prometheus();
 * await serve(agent, { observer: metrics, routes: [metrics.route] });
 * ```
 */
export function prometheus(options: PrometheusOptions = {}): PrometheusMetrics {
  checkOptions("prometheus()", options, names);
  const { path = "/metrics", access = "authenticated" } = options;
  const registry = new Registry();
  const text = (): Promise<string> => registry.text();
  const headers = { "content-type": "text/plain; version=0.0.4; charset=utf-8", "cache-control": "no-store" };
  return {
    ...metricsObserver(registry),
    text,
    route: { path, access, answer: async () => new Response(await text(), { headers }) },
  };
}

const names: OptionNames<PrometheusOptions> = { path: 1, access: 1 };
