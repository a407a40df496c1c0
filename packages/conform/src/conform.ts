import { setMaxListeners } from "node:events";
import { defined } from "@parley/a2a/internal/base/defined";
import type { JsonMap, Test } from "./acts/format.ts";
import { ownSuites } from "./acts/read.ts";
import { Webhooks } from "./call/webhooks.ts";
import { checkOptions, choose, limitsOf, type ConformOptions, type Limits } from "./options.ts";
import { ConformError, verdictOf, type BindingReport, type Report, type TestReport } from "./report/report.ts";
import { planRuns, type PlannedRun } from "./run/plan.ts";
import { askOne, TimeIsUp } from "./run/run-test.ts";
import { offeredBehaviors, type Target } from "./run/target.ts";

/**
 * Tests whether a server conforms to A2A. Runs declarative tests over each binding and version on its card.
 *
 * Requires Node, to read files and to receive push notifications. `stepTimeout`, `timeout` and `maxBytes` limit the run: a server that is too
 * slow or sends too much fails its tests.
 *
 * @param url - The agent's base URL, or the URL of its card (`….json`).
 * @returns the report, for any verdict.
 * @throws ConformError if there is nothing to report: an option or a test file is invalid, the server is unreachable, or nothing on its card
 *   can be tested. Rejects with the reason of `signal` when that is aborted.
 *
 * @example
 * ```ts
 * const report = await conform("http://localhost:4000");
 * assert.deepEqual(failuresOf(report, "must"), []);
 * ```
 */
export async function conform(url: string, options: ConformOptions = {}): Promise<Report> {
  checkOptions(options);
  if (!/^https?:/i.test(url) || !URL.canParse(url)) {
    throw new ConformError("InvalidOptions", `url must be an http or https URL; got ${JSON.stringify(url)}`);
  }
  const limits = limitsOf(options);
  const all = options.suites ?? (await ownSuites());
  const { suites, omitted } = choose(all, options);
  options.signal?.throwIfAborted();
  const startedAt = new Date();
  const began = performance.now();
  const ending = new AbortController();
  // Every pending request adds a listener.
  setMaxListeners(0, ending.signal);
  const abort = (): void => ending.abort(options.signal?.reason);
  options.signal?.addEventListener("abort", abort, { once: true });
  const timer = setTimeout(() => ending.abort(new TimeIsUp()), limits.timeout);
  const webhooks = new Webhooks(options.webhook, limits.maxBytes);
  try {
    const { headers = {}, bindings: wanted, clientBindings = [] } = options;
    const { stepTimeout, maxBytes } = limits;
    const bounds = { maxBytes, signal: ending.signal };
    const plan = await planRuns({
      url,
      suites,
      omitted,
      headers,
      bindings: wanted,
      clientBindings,
      stepTimeout,
      bounds,
    });
    const bindings = await runAll(plan.runs, options, limits, webhooks, ending.signal);
    return {
      url,
      card: plan.card,
      startedAt: startedAt.toISOString(),
      duration: performance.now() - began,
      verdict: verdictOf(bindings, plan.notRun, omittedMusts(omitted, bindings)),
      bindings,
      notRun: plan.notRun,
    };
  } catch (error) {
    if (ending.signal.reason instanceof TimeIsUp && !(error instanceof ConformError)) {
      throw new ConformError("NothingToTest", `no card within ${limits.timeout} ms`, { cause: error });
    }
    throw error;
  } finally {
    clearTimeout(timer);
    options.signal?.removeEventListener("abort", abort);
    // After an error, requests may be pending.
    ending.abort();
    await webhooks.close();
  }
}

/** Runs all tests over all bindings. The results are in the order of the suites. */
async function runAll(
  runs: readonly PlannedRun[],
  options: ConformOptions,
  limits: Limits,
  webhooks: Webhooks,
  signal: AbortSignal,
): Promise<readonly BindingReport[]> {
  // One queue for all bindings: tests of other bindings continue while a test waits.
  const queue = runs.flatMap((run) => {
    const target = targetOf(run, options, limits, webhooks);
    return run.suites.flatMap(({ tests }) => tests.map((test) => ({ run, target, test })));
  });
  const results = new Map<PlannedRun, Map<Test, TestReport>>(runs.map((run) => [run, new Map()]));
  const times = new Map<PlannedRun, { readonly began: number; ended: number }>();
  let taken = 0;
  let done = 0;
  const work = async (): Promise<void> => {
    for (let next = queue[taken++]; next !== undefined; next = queue[taken++]) {
      const { run, target, test } = next;
      const time = times.get(run) ?? { began: performance.now(), ended: 0 };
      times.set(run, time);
      const report = await askOne(test, target, signal);
      if (!(signal.reason instanceof TimeIsUp)) signal.throwIfAborted();
      results.get(run)?.set(test, report);
      time.ended = performance.now();
      const { binding, transport, version, url } = run;
      done += 1;
      options.onTest?.(report, { done, total: queue.length, binding: { binding, transport, version, url } });
    }
  };
  await Promise.all(Array.from({ length: limits.concurrency }, work));
  return runs.map((run) => {
    const { binding, transport, url, version } = run;
    const { began = 0, ended = 0 } = times.get(run) ?? {};
    const reportOf = (test: Test) => results.get(run)?.get(test) ?? [];
    const suites = run.suites.map(({ id, name, tests }) => ({ id, name, tests: tests.flatMap(reportOf) }));
    return { binding, transport, url, version, duration: ended - began, suites };
  });
}

/** Maximum total wait of a binding's tests for the server's rate limit, in milliseconds. */
const longestRateLimit = 10_000;

function targetOf(run: PlannedRun, options: ConformOptions, limits: Limits, webhooks: Webhooks): Target {
  const { headers = {}, otherHeaders, variables, env = {}, behaviors } = options;
  const words = behaviors === undefined || behaviors === "all" || isList(behaviors) ? undefined : behaviors;
  const known = knownBehaviors(run.card, options);
  return {
    card: run.card,
    caller: run.caller,
    headers: lowerCase(headers),
    variables: { baseUrl: run.url, SUT_BASE_URL: run.url, ...variables },
    env,
    webhooks,
    timeout: limits.stepTimeout,
    patience: { left: longestRateLimit },
    ...defined({ otherHeaders: otherHeaders && lowerCase(otherHeaders), behaviors: known, words }),
  };
}

/** The test behaviors that the agent implements. undefined: all. */
function knownBehaviors(card: JsonMap, { behaviors, suites }: ConformOptions): readonly string[] | undefined {
  // With custom suites, assume that the agent implements the behaviors of their tests.
  if (behaviors === undefined) return suites === undefined ? offeredBehaviors(card) : undefined;
  if (behaviors === "all") return undefined;
  return isList(behaviors) ? behaviors : Object.keys(behaviors);
}

function isList(value: readonly string[] | Readonly<Record<string, string>>): value is readonly string[] {
  return Array.isArray(value);
}

function lowerCase(headers: Readonly<Record<string, string>>): Readonly<Record<string, string>> {
  return Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]));
}

/** Number of MUST checks that the options exclude. A test counts once for each binding in its version. */
function omittedMusts(omitted: readonly Test[], bindings: readonly BindingReport[]): number {
  return omitted
    .filter(({ level }) => level === "must")
    .reduce((sum, { version }) => sum + Math.max(1, bindings.filter((run) => run.version === version).length), 0);
}
