import type { AgentCard } from "@parley/a2a";
import type { Caller, Place } from "./caller.ts";
import { codecV03 } from "@parley/a2a/wires";
import { jsonRpcCaller, restCaller } from "./http-callers.ts";
import { CommandError, UsageError } from "../errors.ts";
import { bindingOf, transports, type Json, type JsonMap, type Suite, type Test, type Transport } from "./format.ts";
import { send } from "./http.ts";
import { officialCheck, readingOf } from "./official.ts";
import { find, member } from "./path.ts";
import { grpcCaller, v03Caller } from "./service-caller.ts";
import { runTest, type TestResult } from "./run-test.ts";
import { LiveStream } from "./stream.ts";
import { cardOf, whySkipped, type Target } from "./target.ts";
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
  /** Tests that were left out, so that the report can say so. */
  readonly omitted?: readonly Test[];
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
  /** From its first test to the end of its last, in milliseconds. */
  duration: number;
  readonly suites: readonly { readonly suite: Suite; readonly entries: readonly Entry[] }[];
}

export interface Left {
  readonly binding: string;
  readonly reason: string;
  /** The MUSTs that may apply there. */
  readonly musts: number;
}

export interface Report {
  readonly url: string;
  readonly card: JsonMap;
  readonly startedAt: Date;
  readonly runs: readonly BindingRun[];
  /** Bindings of the card that were not run, and why. */
  readonly left: readonly Left[];
  /** MUSTs that were taken out before, once for each binding that they would have been asked over. */
  readonly omitted: number;
}

type Callers = Readonly<Record<Transport, (place: Place) => Caller>>;

/** What speaks a binding, by the version of the tests. */
const callers: Readonly<Record<string, Callers>> = {
  "1.0": { jsonrpc: jsonRpcCaller, rest: restCaller, grpc: grpcCaller },
  "0.3": {
    jsonrpc: (place) => v03Caller("jsonrpc", place),
    rest: (place) => v03Caller("rest", place),
    grpc: (place) => v03Caller("grpc", place),
  },
};

const cardPath = "/.well-known/agent-card.json";

/** Runs suites against a server, over each binding that its card names in their version. Throws CommandError where there is no card. */
export async function runSuites(options: RunOptions): Promise<Report> {
  const startedAt = new Date();
  const versions = [...new Set(options.suites.flatMap(({ tests }) => tests.map(({ version }) => version)))];
  const webhooks = new Webhooks(options.webhook);
  const plans: Plan[] = [];
  try {
    let problem: CommandError | undefined;
    // The newest first: its card is the one that the report names.
    for (const version of versions.sort().reverse()) {
      try {
        plans.push(await planFor(version, versions, options));
      } catch (error) {
        if (!(error instanceof CommandError)) throw error;
        problem ??= error;
        plans.push({ card: {}, runs: [], left: [{ binding: `A2A ${version}`, reason: error.message, musts: 0 }] });
      }
    }
    const runs = plans.flatMap((plan) => plan.runs);
    const left = new Map(plans.flatMap((plan) => plan.left.map((one) => [one.binding, one])));
    if (runs.length === 0) {
      if (problem !== undefined) throw problem;
      const reasons = [...left.values()].map(({ binding, reason }) => `${binding}: ${reason}`);
      throw new CommandError(`the card names nothing to test; ${reasons.join(", ") || "it has no interface"}`);
    }
    // One queue for all bindings: those who wait for a task at work leave the time to the others.
    const queue = runs.flatMap((planned) => {
      const target = targetOf(planned, options, webhooks);
      return planned.tests.map((test) => ({ planned, target, test }));
    });
    let taken = 0;
    let done = 0;
    const worker = async (): Promise<void> => {
      for (let next = queue[taken++]; next !== undefined; next = queue[taken++]) {
        const { planned, target, test } = next;
        planned.began ??= performance.now();
        const result = await runOne(test, target);
        planned.results.set(test, result);
        planned.run.duration = performance.now() - planned.began;
        options.onResult?.(planned.run, { test, result }, (done += 1), queue.length);
      }
    };
    await Promise.all(Array.from({ length: options.concurrency }, worker));
    const finished = runs.map(({ run }) => run);
    return {
      url: options.url,
      card: runs[0]?.card ?? {},
      startedAt,
      runs: finished,
      left: [...left.values()],
      omitted: omittedMusts(options.omitted ?? [], finished),
    };
  } finally {
    await webhooks.close();
  }
}

interface PlannedRun {
  readonly run: BindingRun;
  readonly results: Map<Test, TestResult>;
  readonly tests: readonly Test[];
  readonly place: Place;
  readonly card: JsonMap;
  began?: number;
}

interface Plan extends Pick<Report, "left"> {
  readonly card: JsonMap;
  readonly runs: readonly PlannedRun[];
}

/** The runs of the tests of one version. A server that has no card of that version has nothing of it to be tested. */
async function planFor(version: string, versions: readonly string[], options: RunOptions): Promise<Plan> {
  const spoken = callers[version];
  if (spoken === undefined)
    throw new UsageError(`there are tests for A2A ${version}, which this runner does not speak`);
  const { cardUrl, card } = await findCard(options, version);
  const { places, left: others } = placesOf(card, cardUrl, version, versions, options.binding);
  const suites = options.suites
    .map((suite) => ({ ...suite, tests: suite.tests.filter((test) => test.version === version) }))
    .filter(({ tests }) => tests.length > 0);
  const musts = suites.flatMap(({ tests }) => tests).filter(({ level }) => level === "must").length;
  const left = others.map(({ applies, ...one }): Left => ({ ...one, musts: applies ? musts : 0 }));
  const runs = [...places].map(([transport, place]): PlannedRun => {
    const results = new Map<Test, TestResult>();
    const entriesOf = (suite: Suite): readonly Entry[] =>
      suite.tests.map((test) => ({ test, result: results.get(test) as TestResult }));
    const run: BindingRun = {
      transport,
      url: place.url,
      version,
      duration: 0,
      suites: suites.map((suite) => ({
        suite,
        get entries() {
          return entriesOf(suite);
        },
      })),
    };
    return { run, results, tests: suites.flatMap(({ tests }) => tests), place, card };
  });
  return { card, runs, left };
}

function targetOf({ run, place, card }: PlannedRun, options: RunOptions, webhooks: Webhooks): Target {
  const { headers, otherHeaders, env, timeout, behaviors } = options;
  return {
    card,
    caller: (callers[run.version] as Callers)[run.transport](place),
    headers,
    ...(otherHeaders === undefined ? {} : { otherHeaders }),
    variables: { baseUrl: place.url, SUT_BASE_URL: place.url, ...options.variables },
    env,
    webhooks,
    timeout,
    ...(behaviors === undefined ? {} : { behaviors }),
  };
}

async function runOne(test: Test, target: Target): Promise<TestResult> {
  const asked = officialCheck(test, target);
  const skip = "reason" in asked ? asked : whySkipped(asked, target);
  if (skip === undefined) {
    const reading = readingOf(test);
    const result = await runTest(asked as Test, target);
    return reading === undefined ? result : { ...result, reading };
  }
  const { reason: skipReason, notAsked } = skip;
  return { result: "skip", duration: 0, skipReason, ...(notAsked === undefined ? {} : { notAsked }), steps: [] };
}

function omittedMusts(omitted: readonly Test[], runs: readonly BindingRun[]): number {
  return omitted
    .filter(({ level }) => level === "must")
    .reduce((sum, { version }) => sum + Math.max(1, runs.filter((run) => run.version === version).length), 0);
}

async function findCard(
  options: RunOptions,
  version: string,
): Promise<{ readonly cardUrl: string; readonly card: JsonMap }> {
  const given = new URL(options.url);
  const base = given.href.replace(/[?#].*/, "").replace(/(?<!\/)\/+$/, "");
  const tries = given.pathname.endsWith(".json") ? [given.href] : [base + cardPath, given.origin + cardPath];
  let problem = "";
  for (const cardUrl of new Set(tries)) {
    const headers = { accept: "application/json", "a2a-version": version, ...options.headers };
    const answer = await send({ method: "GET", url: cardUrl, headers }, options.timeout).catch((error: unknown) => {
      throw new CommandError(error instanceof Error ? error.message : String(error), { cause: error });
    });
    if (answer instanceof LiveStream) answer.close();
    else if (answer.status === 200) {
      const card = readCard(answer.json, version);
      if (card !== undefined) return { cardUrl, card };
    }
    if (problem === "") problem = `${cardUrl} answers ${answer.status} and no A2A ${version} card`;
  }
  throw new CommandError(problem);
}

/** A card in the shape of 1.0, whatever its own is: what tests of 0.3 want of it is in both. */
function readCard(value: Json | undefined, version: string): JsonMap | undefined {
  if (
    Array.isArray(member(value, "supportedInterfaces")) &&
    (version !== "0.3" || member(value, "url") === undefined)
  ) {
    return cardOf(value);
  }
  try {
    return version === "0.3" ? (codecV03.decodeCard(value) as unknown as JsonMap) : undefined;
  } catch {
    return undefined;
  }
}

/** The first interface of each binding in the version of the tests; patch numbers mean nothing (A2A 1.0 §3.6). */
function placesOf(
  card: JsonMap,
  cardUrl: string,
  version: string,
  versions: readonly string[],
  wanted: string | undefined,
): {
  readonly places: ReadonlyMap<Transport, Place>;
  /** With whether the tests may apply there. */
  readonly left: readonly (Omit<Left, "musts"> & { readonly applies: boolean })[];
} {
  const interfaces = member(card, "supportedInterfaces") as readonly Json[];
  const places = new Map<Transport, Place>();
  const left = new Map<string, string>();
  const untested = new Set<string>();
  for (const one of interfaces) {
    const text = (name: string): string => {
      const value = member(one, name);
      return typeof value === "string" ? value : "";
    };
    const [binding, url, tenant] = [text("protocolBinding"), text("url"), member(one, "tenant")];
    const transport = transports.find((name) => bindingOf[name] === binding);
    const spoken = text("protocolVersion").split(".", 2).join(".");
    if (spoken !== version) {
      if (!versions.includes(spoken)) {
        left.set(`${binding} ${spoken}`, "there are no tests of it");
        untested.add(`${binding} ${spoken}`);
      }
      continue;
    }
    if (wanted !== undefined && binding !== wanted) left.set(`${binding} ${version}`, "was not asked for");
    else if (transport === undefined) left.set(`${binding} ${version}`, "is not spoken by this runner");
    else if (!/^https?:/.test(url) && transport !== "grpc")
      left.set(`${binding} ${version}`, `its address ${JSON.stringify(url)} is no URL`);
    else if (!places.has(transport)) {
      const hasTenant = typeof tenant === "string" && tenant !== "";
      places.set(transport, { url, cardUrl, card: card as unknown as AgentCard, ...(hasTenant ? { tenant } : {}) });
    }
  }
  return { places, left: [...left].map(([binding, reason]) => ({ binding, reason, applies: !untested.has(binding) })) };
}

/** The name that the card gives the agent. */
export function nameOf(card: JsonMap): string {
  const name = find(card, "name");
  return typeof name === "string" ? name : "the agent";
}
