import type { AgentCard } from "@parley/a2a/internal/model/index";
import type { ClientBinding } from "@parley/a2a/internal/client/index";
import { defined } from "@parley/a2a/internal/base/defined";
import { codecV03 } from "@parley/a2a/internal/wires";
import {
  bindingOf,
  transports,
  type Json,
  type JsonMap,
  type Suite,
  type Test,
  type Transport,
} from "../acts/format.ts";
import { asJson, findAll, isList, isMap, member } from "../acts/values.ts";
import type { Caller, Place } from "../call/caller.ts";
import { send, type Bounds } from "../call/http.ts";
import { jsonRpcCaller, restCaller } from "../call/http-callers.ts";
import { LiveStream } from "../call/stream.ts";
import { customCaller, grpcCaller, v03Caller } from "../call/service-caller.ts";
import { ConformError, excluded, type BindingReport, type NotRun } from "../report/report.ts";

/** The tests to run over one binding in one protocol version. */
export interface PlannedRun extends Pick<BindingReport, "binding" | "transport" | "url" | "version"> {
  readonly card: JsonMap;
  readonly caller: Caller;
  readonly suites: readonly Suite[];
}

export interface Plan {
  /** The newest card found. */
  readonly card: JsonMap;
  readonly runs: readonly PlannedRun[];
  readonly notRun: readonly NotRun[];
}

export interface PlanOptions {
  readonly url: string;
  readonly suites: readonly Suite[];
  /** Tests that the options exclude. */
  readonly omitted: readonly Test[];
  readonly headers: Readonly<Record<string, string>>;
  readonly bindings: readonly string[] | undefined;
  readonly clientBindings: readonly ClientBinding[];
  readonly stepTimeout: number;
  readonly bounds: Bounds;
}

/** Callers of each binding, by protocol version. */
const callers: Readonly<Record<string, Readonly<Record<Transport, (place: Place) => Caller>>>> = {
  "1.0": { jsonrpc: jsonRpcCaller, rest: restCaller, grpc: grpcCaller },
  "0.3": {
    jsonrpc: (place) => v03Caller("jsonrpc", place),
    rest: (place) => v03Caller("rest", place),
    grpc: (place) => v03Caller("grpc", place),
  },
};

/**
 * Fetches the server's card in each version that has tests, and plans the runs.
 *
 * @throws ConformError if the server is unreachable or has no card, or nothing on its card can be tested.
 */
export async function planRuns(options: PlanOptions): Promise<Plan> {
  const versions = [...new Set(options.suites.flatMap(({ tests }) => tests.map(({ version }) => version)))];
  const unknown = versions.find((version) => !Object.hasOwn(callers, version));
  if (unknown !== undefined) {
    throw new ConformError("InvalidTests", `this runner does not support A2A ${unknown}, which some tests require`);
  }
  const runs: PlannedRun[] = [];
  const notRun = new Map<string, NotRun>();
  let problem: ConformError | undefined;
  // The newest version first: the report shows its card.
  for (const version of versions.sort().reverse()) {
    try {
      const { url, headers, stepTimeout, bounds } = options;
      const found = await findCard({ url, version, headers, timeout: stepTimeout, bounds });
      const plan = planVersion(found, version, versions, options);
      runs.push(...plan.runs);
      for (const one of plan.notRun) notRun.set(one.binding, one);
    } catch (error) {
      if (!(error instanceof ConformError)) throw error;
      problem ??= error;
      notRun.set(`A2A ${version}`, { binding: `A2A ${version}`, reason: error.message, musts: 0 });
    }
  }
  if (runs.length > 0) return { card: runs[0]?.card ?? {}, runs, notRun: [...notRun.values()] };
  if (problem !== undefined) throw problem;
  const reasons = [...notRun.values()].map(({ binding, reason }) => `${binding}: ${reason}`);
  throw new ConformError(
    "NothingToTest",
    `nothing on the card can be tested: ${reasons.join(", ") || "it has no interfaces"}`,
  );
}

/** Plans the runs of one version, over the first interface of each binding. Patch versions are ignored (A2A 1.0 §3.6). */
function planVersion(
  { card, cardUrl }: Found,
  version: string,
  versions: readonly string[],
  options: PlanOptions,
): Omit<Plan, "card"> {
  const suites = options.suites
    .map((suite) => ({ ...suite, tests: suite.tests.filter((test) => test.version === version) }))
    .filter(({ tests }) => tests.length > 0);
  const musts = suites.flatMap(({ tests }) => tests).filter(({ level }: Test) => level === "must").length;
  const runs = new Map<string, PlannedRun>();
  const notRun = new Map<string, NotRun>();
  const leave = (binding: string, reason: string, checks: number): void =>
    void notRun.set(binding, { binding, reason, musts: checks });
  for (const one of findAll(card, "supportedInterfaces[*]")) {
    const binding = textOf(one, "protocolBinding");
    const url = textOf(one, "url");
    const spoken = textOf(one, "protocolVersion").split(".", 2).join(".");
    if (spoken !== version) {
      const leftOut = options.omitted.some((test) => test.version === spoken);
      const reason = leftOut ? excluded : "no tests for this version";
      // The verdict counts excluded tests separately.
      if (!versions.includes(spoken)) leave(`${binding} ${spoken}`, reason, 0);
      continue;
    }
    const name = `${binding} ${version}`;
    const caller = callerFor(binding, version, options.clientBindings);
    if (options.bindings?.includes(binding) === false) leave(name, "not requested", musts);
    else if (caller === undefined) leave(name, "not supported by this runner", musts);
    else if (caller.transport !== "grpc" && !caller.custom && !/^https?:/.test(url)) {
      leave(name, `its address ${JSON.stringify(url)} is not an HTTP URL`, musts);
    } else if (!runs.has(binding)) {
      const tenant = textOf(one, "tenant");
      const place: Place = {
        binding,
        url,
        cardUrl,
        card: uncheckedCard(card),
        bounds: options.bounds,
        ...defined({ tenant: tenant || undefined }),
      };
      const { transport } = caller;
      runs.set(binding, { binding, transport, url, version, card, suites, caller: caller.open(place) });
    }
  }
  return { runs: [...runs.values()], notRun: [...notRun.values()] };
}

interface Callable {
  readonly transport: string;
  readonly custom: boolean;
  open(place: Place): Caller;
}

/** The caller of a binding. undefined: the runner does not support the binding. */
function callerFor(binding: string, version: string, clientBindings: readonly ClientBinding[]): Callable | undefined {
  const given = clientBindings.find(({ name, versions }) => name === binding && versions.includes(version));
  if (given !== undefined) {
    return { transport: binding, custom: true, open: (place) => customCaller(given, version, place) };
  }
  const transport = transports.find((name) => bindingOf[name] === binding);
  const open = transport === undefined ? undefined : callers[version]?.[transport];
  return transport === undefined || open === undefined ? undefined : { transport, custom: false, open };
}

/** The card for clients of bindings. It stays unchecked, because tests check it. */
function uncheckedCard(card: object): AgentCard {
  return card as AgentCard;
}

function textOf(value: Json, name: string): string {
  const found = member(value, name);
  return typeof found === "string" ? found : "";
}

/** A2A 1.0 §8.2. */
const cardPath = "/.well-known/agent-card.json";

interface Found {
  readonly cardUrl: string;
  readonly card: JsonMap;
}

/**
 * Fetches the card of a version. Uses the URL itself if it ends with `.json`; otherwise the well-known path below the URL, then at
 * the origin. Throws ConformError if there is no card.
 */
async function findCard(options: {
  readonly url: string;
  readonly version: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly timeout: number;
  readonly bounds: Bounds;
}): Promise<Found> {
  const { version, timeout, bounds } = options;
  const given = new URL(options.url);
  const base = given.href.replace(/[?#].*/, "").replace(/(?<!\/)\/+$/, "");
  const tries = given.pathname.endsWith(".json") ? [given.href] : [base + cardPath, given.origin + cardPath];
  const headers = { accept: "application/json", "a2a-version": version, ...options.headers };
  let problem = "";
  for (const cardUrl of new Set(tries)) {
    const answer = await send({ method: "GET", url: cardUrl, headers }, timeout, bounds).catch((error: unknown) => {
      bounds.signal.throwIfAborted();
      const reason = error instanceof Error ? error.message : String(error);
      throw new ConformError("NothingToTest", reason, { cause: error });
    });
    if (answer instanceof LiveStream) answer.close();
    else if (answer.status === 200) {
      const card = readCard(answer.json, version);
      if (card !== undefined) return { cardUrl, card };
    }
    if (problem === "") problem = `${cardUrl} has no A2A ${version} card (HTTP ${answer.status})`;
  }
  throw new ConformError("NothingToTest", problem);
}

/** The card in the shape of 1.0. Tests of 0.3 only use members that both shapes have. */
function readCard(value: Json | undefined, version: string): JsonMap | undefined {
  const isV1 = isList(member(value, "supportedInterfaces"));
  if (isV1 && (version !== "0.3" || member(value, "url") === undefined)) return isMap(value) ? value : {};
  try {
    return version === "0.3" ? asJson(codecV03.decodeCard(value)) : undefined;
  } catch {
    return undefined;
  }
}
