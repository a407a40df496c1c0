import type { Test } from "../acts/format.ts";
import { defined } from "@parley/a2a/internal/base/defined";
import { cut } from "@parley/a2a/internal/base/display";
import { Unresolved } from "../acts/values.ts";
import { NoAnswer } from "../call/http.ts";
import { InvalidAnswer } from "../call/stream.ts";
import { Failed } from "../judge/assert.ts";
import type { Failure, Skipped, StepReport, TestReport } from "../report/report.ts";
import { officialCheck, readingOf } from "./official.ts";
import { RateLimited, StepRunner } from "./steps.ts";
import { whySkipped, type Target } from "./target.ts";

/** What makes a test fail; anything else is a mistake of the test or of the runner. */
const failures = [Failed, InvalidAnswer, NoAnswer, Unresolved] as const;

/** The reason that a run's signal has when its time limit is over. */
export class TimeIsUp extends Error {}

/** Runs one test where it applies and can be asked. Never rejects; `signal` ends it. */
export async function askOne(test: Test, target: Target, signal: AbortSignal): Promise<TestReport> {
  const asked = officialCheck(test, target);
  const skipped = "reason" in asked ? asked : whySkipped(asked, target);
  const ran: Ran =
    skipped === undefined
      ? await runTest(asked as Test, target, signal)
      : { result: "skip", duration: 0, skipped, steps: [] };
  const { id, name, level, specRef, requirements, tags, behaviors } = test;
  return {
    id,
    name,
    level,
    ...defined({ section: specRef, reading: skipped === undefined ? readingOf(test) : undefined }),
    requirements,
    tags,
    behaviors,
    ...ran,
  };
}

type Ran = Pick<TestReport, "result" | "duration" | "skipped" | "failure" | "steps">;

/** Runs one test. Everything that it opened is closed when it returns. */
async function runTest(test: Test, target: Target, signal: AbortSignal): Promise<Ran> {
  const began = performance.now();
  const steps: StepReport[] = [];
  let at = "";
  let since = began;
  let runner: StepRunner | undefined;
  const runSteps = async (): Promise<void> => {
    signal.throwIfAborted();
    const wantsWebhook = JSON.stringify(test.steps).includes("webhookUrl");
    runner = new StepRunner(test, target, wantsWebhook ? await target.webhooks.open() : undefined, signal);
    for (const step of test.steps) {
      at = step.id;
      since = performance.now();
      await runner.run(step);
      steps.push({ id: at, result: "pass", duration: performance.now() - since });
    }
    at = "";
    for (const assertion of test.assertions) runner.scope.demand(assertion);
  };
  try {
    await unlessAborted(runSteps(), signal);
    return { result: "pass", duration: performance.now() - began, steps };
  } catch (error) {
    const duration = performance.now() - began;
    if (signal.aborted) return { result: "skip", duration, skipped: outOfTime, steps: [] };
    if (error instanceof RateLimited) {
      return { result: "skip", duration, skipped: { reason: error.message, applies: true }, steps: [] };
    }
    const result = failures.some((one) => error instanceof one) ? "fail" : "error";
    if (at !== "") steps.push({ id: at, result, duration: performance.now() - since });
    return { result, duration, failure: failureOf(error, at), steps };
  } finally {
    runner?.scope.end();
  }
}

const outOfTime: Skipped = { reason: "the time limit of the run was over", applies: true, option: "timeout" };

/** The promise, or a rejection as soon as the signal is aborted. */
function unlessAborted<T>(promise: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    const stop = (): void => reject(signal.reason as Error);
    signal.addEventListener("abort", stop, { once: true });
    promise.then(resolve, reject).finally(() => signal.removeEventListener("abort", stop));
  });
}

/** Longest text of a failure, in characters: a server can say anything, at any length. */
const maxTextLength = 2_000;

function failureOf(error: unknown, stepId: string): Failure {
  const message = cut(error instanceof Error ? error.message : String(error), maxTextLength);
  const mismatch = error instanceof Failed ? error.mismatch : undefined;
  return {
    message,
    ...defined({
      stepId: stepId || undefined,
      expected: mismatch && cut(mismatch.expected, maxTextLength),
      actual: mismatch && cut(mismatch.actual, maxTextLength),
      path: cut(mismatch?.path ?? "", maxTextLength) || undefined,
    }),
  };
}
