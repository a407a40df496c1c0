import type { AgentCard } from "@parley/a2a";
import type { Caller, Place } from "./caller.ts";
import { grpcCaller } from "./grpc-caller.ts";
import { jsonRpcCaller, restCaller } from "./http-callers.ts";
import { CommandError } from "../errors.ts";
import { bindingOf, transports, type Json, type JsonMap, type Suite, type Test, type Transport } from "./format.ts";
import { send } from "./http.ts";
import { officialCheck } from "./official.ts";
import { find, member } from "./path.ts";
import { runTest, type TestResult } from "./run-test.ts";
import { LiveStream } from "./stream.ts";
import { cardOf, notApplicable, type Target } from "./target.ts";
import { Webhooks } from "./webhooks.ts";

export interface RunOptions {
  readonly url: string;
  readonly suites: readonly Suite[];
  readonly headers: Readonly<Record<string, string>>;
  readonly otherHeaders?: Readonly<Record<string, string>>;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly variables: Readonly<Record<string, string>>;
  /** Only this binding, as cards name it. */
  readonly binding?: string;
  readonly behaviors?: readonly string[];
  /** Of one step, in milliseconds. */
  readonly timeout: number;
  /** Tests at a time. */
  readonly concurrency: number;
  /** How the server reaches this machine with its push notifications. */
  readonly webhook?: string;
  /** Called when a test is over. */
  onResult?(run: BindingRun, entry: Entry, done: number, total: number): void;
}

export interface Entry {
  readonly test: Test;
  readonly result: TestResult;
}

/** The results of one binding. */
export interface BindingRun {
  readonly transport: Transport;
  readonly url: string;
  readonly version: string;
  /** In milliseconds. */
  duration: number;
  readonly suites: readonly { readonly suite: Suite; readonly entries: readonly Entry[] }[];
}

export interface Report {
  readonly url: string;
  readonly card: JsonMap;
  readonly startedAt: Date;
  readonly runs: readonly BindingRun[];
  /** Bindings of the card that were not run, and why. */
  readonly left: readonly { readonly binding: string; readonly reason: string }[];
  /** Every MUST holds on every binding, and at least one was asked. */
  readonly conformant: boolean;
}

const callers: Readonly<Record<Transport, (place: Place) => Caller>> = {
  jsonrpc: jsonRpcCaller,
  rest: restCaller,
  grpc: grpcCaller,
};

const cardPath = "/.well-known/agent-card.json";

/** Runs suites against a server, over each binding that its card names. Throws CommandError where there is no card. */
export async function runSuites(options: RunOptions): Promise<Report> {
  const startedAt = new Date();
  const version = options.suites.flatMap(({ tests }) => tests.map((test) => test.version))[0] ?? "1.0";
  const { cardUrl, card } = await findCard(options, version);
  const { places, left } = placesOf(card, cardUrl, version, options.binding);
  const webhooks = new Webhooks(options.webhook);
  const runs: BindingRun[] = [];
  try {
    const total = places.size * options.suites.reduce((sum, { tests }) => sum + tests.length, 0);
    let done = 0;
    for (const [transport, place] of places) {
      const target: Target = {
        card,
        caller: callers[transport](place),
        headers: options.headers,
        ...(options.otherHeaders === undefined ? {} : { otherHeaders: options.otherHeaders }),
        variables: { baseUrl: place.url, SUT_BASE_URL: place.url, ...options.variables },
        env: options.env,
        webhooks,
        timeout: options.timeout,
        ...(options.behaviors === undefined ? {} : { behaviors: options.behaviors }),
      };
      const began = performance.now();
      const results = new Map<Test, TestResult>();
      const run: BindingRun = {
        transport,
        url: place.url,
        version,
        duration: 0,
        suites: options.suites.map((suite) => ({
          suite,
          get entries() {
            return suite.tests.map((test) => ({ test, result: results.get(test) as TestResult }));
          },
        })),
      };
      runs.push(run);
      const queue = options.suites.flatMap(({ tests }) => tests);
      const worker = async (): Promise<void> => {
        for (let test = queue.shift(); test !== undefined; test = queue.shift()) {
          const result = await runOne(test, target);
          results.set(test, result);
          options.onResult?.(run, { test, result }, (done += 1), total);
        }
      };
      await Promise.all(Array.from({ length: options.concurrency }, worker));
      run.duration = performance.now() - began;
    }
  } finally {
    await webhooks.close();
  }
  return { url: options.url, card, startedAt, runs, left, conformant: isConformant(runs) };
}

async function runOne(test: Test, target: Target): Promise<TestResult> {
  const skipped = (skipReason: string): TestResult => ({ result: "skip", duration: 0, skipReason, steps: [] });
  const asked = officialCheck(test, target);
  if (typeof asked === "string") return skipped(asked);
  const reason = notApplicable(asked, target);
  return reason === undefined ? runTest(asked, target) : skipped(reason);
}

function isConformant(runs: readonly BindingRun[]): boolean {
  const entries = runs.flatMap(({ suites }) => suites.flatMap((suite) => suite.entries));
  return (
    entries.length > 0 &&
    entries.every(({ test, result }) => test.level !== "must" || result.result === "pass" || result.result === "skip")
  );
}

async function findCard(
  options: RunOptions,
  version: string,
): Promise<{ readonly cardUrl: string; readonly card: JsonMap }> {
  const given = new URL(options.url);
  const base = given.href.replace(/[?#].*$/, "").replace(/\/+$/, "");
  const tries = given.pathname.endsWith(".json") ? [given.href] : [base + cardPath, given.origin + cardPath];
  let problem = "";
  for (const cardUrl of new Set(tries)) {
    const headers = { accept: "application/json", "a2a-version": version, ...options.headers };
    const answer = await send({ method: "GET", url: cardUrl, headers }, options.timeout).catch((error: unknown) => {
      throw new CommandError(error instanceof Error ? error.message : String(error), { cause: error });
    });
    if (answer instanceof LiveStream) answer.close();
    else if (answer.status === 200 && Array.isArray(member(answer.json, "supportedInterfaces"))) {
      return { cardUrl, card: cardOf(answer.json) };
    }
    if (problem === "") problem = `${cardUrl} answers ${answer.status} and no A2A ${version} card`;
  }
  throw new CommandError(problem);
}

/** The first interface of each binding in the version of the tests; patch numbers mean nothing (A2A 1.0 §3.6). */
function placesOf(
  card: JsonMap,
  cardUrl: string,
  version: string,
  wanted: string | undefined,
): Pick<Report, "left"> & { readonly places: ReadonlyMap<Transport, Place> } {
  const interfaces = member(card, "supportedInterfaces") as readonly Json[];
  const places = new Map<Transport, Place>();
  const left = new Map<string, string>();
  for (const one of interfaces) {
    const text = (name: string): string => {
      const value = member(one, name);
      return typeof value === "string" ? value : "";
    };
    const [binding, url, tenant] = [text("protocolBinding"), text("url"), member(one, "tenant")];
    const transport = transports.find((name) => bindingOf[name] === binding);
    if (text("protocolVersion").split(".", 2).join(".") !== version) {
      left.set(`${binding} ${text("protocolVersion")}`, `the tests are of ${version}`);
    } else if (wanted !== undefined && binding !== wanted) left.set(binding, "was not asked for");
    else if (transport === undefined) left.set(binding, "is not spoken by this runner");
    else if (!/^https?:/.test(url) && transport !== "grpc")
      left.set(binding, `its address ${JSON.stringify(url)} is no URL`);
    else if (!places.has(transport)) {
      const hasTenant = typeof tenant === "string" && tenant !== "";
      places.set(transport, { url, cardUrl, card: card as unknown as AgentCard, ...(hasTenant ? { tenant } : {}) });
    }
  }
  return { places, left: [...left].map(([binding, reason]) => ({ binding, reason })) };
}

/** The name that the card gives the agent. */
export function nameOf(card: JsonMap): string {
  const name = find(card, "name");
  return typeof name === "string" ? name : "the agent";
}
