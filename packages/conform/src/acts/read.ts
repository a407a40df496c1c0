import { readdir, readFile, stat } from "node:fs/promises";
import { basename, dirname, join, resolve } from "node:path";
import { parseDocument } from "yaml";
import { fileURLToPath } from "node:url";
import { getSystemErrorMap } from "node:util";
import { ConformError } from "../error.ts";
import {
  levels,
  operations,
  transports,
  type CollectionMatch,
  type Credentials,
  type EventAssertion,
  type Expect,
  type ExpectError,
  type ExpectStream,
  type Json,
  type NamedAssertion,
  type Operation,
  type Repeat,
  type Step,
  type Suite,
  type Test,
} from "./format.ts";
import { FormatError, StrictMap } from "./strict-map.ts";
import { isMap } from "./path.ts";

/** Names of operations that stand in files besides those of ACTS §4.1. */
const otherNames: Readonly<Record<string, Operation>> = {
  set_push_notification_config: "create_push_config",
  create_push_notification_config: "create_push_config",
  get_push_notification_config: "get_push_config",
  list_push_notification_configs: "list_push_configs",
  delete_push_notification_config: "delete_push_config",
};

/**
 * Reads tests from a file, or from all `*.acts.yaml`, `*.acts.yml` and `*.acts.json` in a folder. A file that others include
 * is read once.
 *
 * @throws ConformError (`InvalidTests`) where a file cannot be read, or has a word that the runner does not know: it would be
 *   a check that nobody makes.
 */
export async function readSuites(path: string | URL): Promise<readonly Suite[]> {
  const place = typeof path === "string" ? path : fileURLToPath(path);
  const files = await filesOf(place);
  const seen = new Set<string>();
  const suites: Suite[] = [];
  for (const file of files) suites.push(...(await readFileSuites(file, seen)));
  return unique(suites, place);
}

/** The tests of this package. */
export function ownSuites(): Promise<readonly Suite[]> {
  return readSuites(new URL("../../suites", import.meta.url));
}

/**
 * Reads tests from the text of one file, YAML or JSON. It may include no other file.
 *
 * @param name - What errors call the text.
 * @throws ConformError (`InvalidTests`) where it has a word that the runner does not know.
 */
export function parseSuites(text: string, name: string = "the tests"): readonly Suite[] {
  try {
    const { suites, include } = parseFile(text, name);
    if (include.length > 0) throw new FormatError(`${name}.include needs files: use readSuites`);
    return unique(suites, name);
  } catch (error) {
    if (error instanceof FormatError) throw new ConformError("InvalidTests", error.message, { cause: error });
    throw error;
  }
}

function unique(suites: readonly Suite[], name: string): readonly Suite[] {
  const ids = suites.flatMap(({ tests }) => tests.map(({ id }) => id));
  const twice = ids.find((id, at) => ids.indexOf(id) !== at);
  if (twice !== undefined) throw new ConformError("InvalidTests", `${name}: two tests have the id ${twice}`);
  return suites;
}

/** Why a file cannot be read, in the system's words. */
function fileReason(error: unknown): string {
  const errno = error instanceof Error && "errno" in error ? Number(error.errno) : 0;
  return getSystemErrorMap().get(errno)?.[1] ?? (error instanceof Error ? error.message : String(error));
}

async function filesOf(path: string): Promise<readonly string[]> {
  try {
    if (!(await stat(path)).isDirectory()) return [path];
    const names = (await readdir(path)).filter((name) => /\.acts\.(?:ya?ml|json)$/.test(name)).sort();
    if (names.length === 0) throw new ConformError("InvalidTests", `${path} holds no *.acts.yaml`);
    return names.map((name) => join(path, name));
  } catch (error) {
    if (error instanceof ConformError) throw error;
    throw new ConformError("InvalidTests", `cannot read ${path}: ${fileReason(error)}`, { cause: error });
  }
}

async function readFileSuites(file: string, seen: Set<string>): Promise<readonly Suite[]> {
  const path = resolve(file);
  if (seen.has(path)) return [];
  seen.add(path);
  let text: string;
  try {
    text = await readFile(path, "utf8");
  } catch (error) {
    throw new ConformError("InvalidTests", `cannot read ${file}: ${fileReason(error)}`, { cause: error });
  }
  try {
    const { suites, include } = parseFile(text, basename(file));
    const included: Suite[] = [];
    for (const name of include) included.push(...(await readFileSuites(join(dirname(path), name), seen)));
    return [...suites, ...included];
  } catch (error) {
    if (error instanceof FormatError)
      throw new ConformError("InvalidTests", `${file}: ${error.message}`, { cause: error });
    throw error;
  }
}

/** Reads the text of one file; `where` begins what errors say. YAML 1.2, so JSON as well. */
function parseFile(
  text: string,
  where: string,
): { readonly suites: readonly Suite[]; readonly include: readonly string[] } {
  const yaml = parseDocument(text, { prettyErrors: true });
  const [error] = yaml.errors;
  if (error !== undefined) throw new FormatError(error.message);
  const document = new StrictMap(yaml.toJS() as Json, where);
  const format = document.required("acts_version");
  if (!/^1(?:\.|$)/.test(format)) document.fail("acts_version", `is ${format}: this runner reads version 1`);
  const version = document.required("spec_version").split(".", 2).join(".");
  const variables = document.textMap("variables");
  for (const key of ["spec_ref", "metadata"]) document.any(key);
  const suites = document.nodes("suites").map((suite) => readSuite(suite, version, variables));
  const include = document.texts("include");
  if (suites.length === 0 && include.length === 0) document.fail("suites", "is missing");
  document.done();
  return { suites, include };
}

function readSuite(node: StrictMap, version: string, variables: Test["variables"]): Suite {
  const tags = node.texts("tags");
  node.any("description");
  const suite = {
    id: node.required("id"),
    name: node.required("name"),
    tests: node.nodes("tests").map((test) => readTest(test, tags, version, variables)),
  };
  node.done();
  return suite;
}

function readTest(node: StrictMap, tags: readonly string[], version: string, variables: Test["variables"]): Test {
  const description = node.text("description");
  const specRef = node.text("spec_ref");
  const conditions = node.node("preconditions");
  node.any("origin");
  const refusesInput = conditions?.text("refuses_input");
  const test: Test = {
    id: node.required("id"),
    name: node.required("name"),
    ...(description === undefined ? {} : { description: description.trim() }),
    ...(specRef === undefined ? {} : { specRef }),
    level: node.choice("level", levels) ?? node.fail("level", "is missing"),
    tags: [...new Set([...tags, ...node.texts("tags")])],
    transports: node.choices("transport", transports),
    preconditions: {
      capabilities: conditions?.map("capabilities") ?? {},
      skills: conditions?.nodes("skills").map((skill) => skill.required("id")) ?? [],
      transports: conditions?.choices("transport", transports) ?? [],
      extensions: conditions?.texts("extensions") ?? [],
      requiredExtension: conditions?.flag("required_extension") ?? false,
      ...(refusesInput === undefined ? {} : { refusesInput }),
    },
    behaviors: node.texts("requires_behaviors"),
    needs: node.texts("runner_requirements"),
    steps: node.nodes("steps").map(readStep),
    assertions: node.nodes("assertions").map(readNamed),
    version,
    variables,
  };
  conditions?.any("description");
  conditions?.done();
  node.done();
  if (test.steps.length === 0) node.fail("steps", "is missing");
  const ids = test.steps.map(({ id }) => id);
  const twice = ids.find((id, at) => ids.indexOf(id) !== at);
  if (twice !== undefined) node.fail("steps", `has two steps of the id ${twice}`);
  if (test.transports.length !== 1 && test.steps.some(({ kind }) => kind === "raw")) {
    node.fail("transport", "must name the binding of a raw step");
  }
  return test;
}

function readStep(node: StrictMap): Step {
  node.any("description");
  const base = {
    id: node.required("id"),
    assertions: node.nodes("assertions").map(readNamed),
    capture: node.textMap("capture"),
    delay: node.number("delay_ms") ?? 0,
  };
  const kinds = ["operation", "raw", "stream", "deliveries", "assertion", "client_response"].filter((key) =>
    node.has(key),
  );
  if (kinds.length !== 1)
    node.fail("operation", "or one of raw, stream, deliveries, assertion and client_response must stand here");
  const step = ((): Step => {
    switch (kinds[0]) {
      case "operation":
        return { ...base, kind: "call", ...readCall(node), ...readExpecting(node) };
      case "raw": {
        const raw = node.node("raw") as StrictMap;
        const body = raw.any("body");
        const bodyRaw = raw.text("body_raw");
        const step: Step = {
          ...base,
          kind: "raw",
          method: raw.required("method"),
          path: raw.required("path"),
          headers: raw.textMap("headers"),
          ...(body === undefined ? {} : { body }),
          ...(bodyRaw === undefined ? {} : { bodyRaw }),
          literal: raw.flag("literal"),
          ...readExpecting(node),
        };
        raw.done();
        const checks = ["expect", "expect_error", "expect_stream", "assertions"];
        if (!checks.some((key) => node.has(key)))
          node.fail("expect", `or one of ${checks.slice(1).join(", ")} must stand here`);
        return step;
      }
      case "stream": {
        const read = node.number("read");
        const expectStream = node.node("expect_stream");
        return {
          ...base,
          kind: "stream",
          stream: node.required("stream"),
          disconnect: node.flag("disconnect"),
          ...(read === undefined ? {} : { read }),
          ...(expectStream === undefined ? {} : { expectStream: readExpectStream(expectStream) }),
        };
      }
      case "deliveries": {
        const deliveries = node.node("deliveries") as StrictMap;
        const until = deliveries.any("until");
        const each = deliveries.any("each");
        const none = deliveries.flag("none");
        deliveries.done();
        return {
          ...base,
          kind: "deliveries",
          none,
          ...(until === undefined ? {} : { until }),
          ...(each === undefined ? {} : { each }),
        };
      }
      case "assertion":
        return { ...base, kind: "assertion", assertion: readNamed(node.node("assertion") as StrictMap) };
      default:
        node.any("client_response");
        node.any("expect_parsed");
        return { ...base, kind: "client" };
    }
  })();
  node.done();
  return step;
}

function readCall(
  node: StrictMap,
): Pick<Step & { kind: "call" }, "operation" | "params" | "headers" | "repeat" | "read"> {
  const name = node.required("operation");
  const known =
    otherNames[name] ?? operations.find((one) => one === name) ?? node.fail("operation", `${name} is not known`);
  const params = node.map("params");
  const { extended, ...rest } = params;
  const repeat = node.node("repeat");
  const read = node.number("read");
  return {
    // The official files ask for the extended card in two ways.
    operation: known === "get_agent_card" && extended === true ? "get_extended_agent_card" : known,
    params: known === "get_agent_card" ? rest : params,
    headers: Object.fromEntries(
      Object.entries(node.map("headers")).map(([header, value]) => [
        header.toLowerCase(),
        value === null || typeof value === "string"
          ? value
          : node.fail(`headers.${header}`, "is neither text nor null"),
      ]),
    ),
    ...(repeat === undefined ? {} : { repeat: readRepeat(repeat) }),
    ...(read === undefined ? {} : { read }),
  };
}

function readRepeat(node: StrictMap): Repeat {
  const repeat: Repeat = {
    until: node.required("until"),
    attempts: node.number("max_attempts") ?? 10,
    delay: node.number("delay_ms") ?? 1000,
    backoff: node.choice("backoff", ["none", "linear", "exponential"]) ?? "none",
  };
  node.done();
  return repeat;
}

function readExpecting(node: StrictMap): {
  readonly credentials: Credentials;
  readonly expect?: Expect;
  readonly expectError?: ExpectError;
  readonly expectStream?: ExpectStream;
} {
  const expect = node.node("expect");
  const expectError = node.node("expect_error");
  const expectStream = node.node("expect_stream");
  return {
    credentials: node.choice("credentials", ["caller", "none", "invalid", "other"]) ?? "caller",
    ...(expect === undefined ? {} : { expect: readExpect(expect) }),
    ...(expectError === undefined ? {} : { expectError: readExpectError(expectError) }),
    ...(expectStream === undefined ? {} : { expectStream: readExpectStream(expectStream) }),
  };
}

/** Without a `body` the members themselves describe it; `error: { exists: true }` and `status: error` mean any error. */
function readExpect(node: StrictMap): Expect {
  const status = node.any("status");
  const headers = node.any("headers");
  const orError = node.any("or_error") === true ? [] : node.has("or_error") ? node.texts("or_error") : undefined;
  const body = node.any("body");
  const errorMember = node.any("error");
  const error = status === "error" || (isMap(errorMember) && errorMember["exists"] === true);
  const bare = node.rest();
  const whole = body ?? (Object.keys(bare).length === 0 ? undefined : bare);
  if (body !== undefined && Object.keys(bare).length > 0) node.done();
  return {
    ...(status === undefined || status === "error" ? {} : { status }),
    ...(whole === undefined ? {} : { body: whole }),
    ...(headers === undefined ? {} : { headers }),
    error,
    ...(orError === undefined ? {} : { orError }),
  };
}

function readExpectError(node: StrictMap): ExpectError {
  const named = node.any("error_type") ?? node.any("code");
  const list = isMap(named) ? named["one_of"] : named;
  const types = (Array.isArray(list) ? (list as readonly Json[]) : list === undefined ? [] : [list]).map((one) =>
    typeof one === "string" ? one : node.fail("error_type", "is not the name of an error"),
  );
  const message = node.any("message");
  const details = node.any("details") ?? node.any("data");
  const status = node.any("status");
  const headers = node.any("headers");
  node.done();
  return {
    types,
    ...(message === undefined ? {} : { message }),
    ...(details === undefined ? {} : { details }),
    ...(status === undefined ? {} : { status }),
    ...(headers === undefined ? {} : { headers }),
  };
}

function readExpectStream(node: StrictMap): ExpectStream {
  const optional = <K extends string, T>(key: K, value: T | undefined): { readonly [key in K]?: T } =>
    (value === undefined ? {} : { [key]: value }) as { readonly [key in K]?: T };
  const stream: ExpectStream = {
    ...optional("minCount", node.number("min_count")),
    ...optional("maxCount", node.number("max_count")),
    ...optional("timeout", node.number("timeout_ms")),
    monotonic: node.choice("ordering", ["monotonic_state"]) !== undefined,
    events: node.nodes("events").map(readEvent),
    ...optional("finalEvent", eventNames(node.any("final_event"))),
    ...optional("eachEvent", eventNames(node.any("each_event"))),
    ...optional("headers", node.any("headers")),
    ...optional("eachRaw", node.any("each_raw")),
    ...optional("sameUpdatesAs", node.text("same_updates_as")),
  };
  node.done();
  return stream;
}

function readEvent(node: StrictMap, position: number): EventAssertion {
  const description = node.text("description");
  const anywhere = node.choice("match", ["exact_position", "any_position"]) === "any_position";
  const index = node.number("index") ?? position;
  return {
    ...(description === undefined ? {} : { description }),
    anywhere,
    index,
    assertion: eventNames(node.rest()) ?? {},
  };
}

/** The members of a stream's events are written in two ways. */
function eventNames(assertion: Json | undefined): Json | undefined {
  if (Array.isArray(assertion)) return (assertion as readonly Json[]).map((one) => eventNames(one) ?? null);
  if (!isMap(assertion)) return assertion;
  return Object.fromEntries(
    Object.entries(assertion).map(([key, value]) => {
      if (key === "status_update") return ["statusUpdate", value];
      if (key === "artifact_update") return ["artifactUpdate", value];
      return [key, ["one_of", "any_of", "all_of", "not"].includes(key) ? (eventNames(value) ?? null) : value];
    }),
  );
}

function readNamed(node: StrictMap): NamedAssertion {
  node.any("id");
  const description = node.text("description");
  const path = node.text("path");
  const match = node.any("match");
  const collection = (key: string): CollectionMatch | undefined => {
    const one = node.node(key);
    if (one === undefined) return undefined;
    const found = { path: one.required("path"), match: one.any("match") ?? one.fail("match", "is missing") };
    one.done();
    return found;
  };
  const [any, all, none] = [collection("any"), collection("all"), collection("none")];
  const assertion: NamedAssertion = {
    source: node.required("source"),
    ...(description === undefined ? {} : { description }),
    ...(path === undefined ? {} : { path }),
    ...(match === undefined ? {} : { match }),
    ...(any === undefined ? {} : { any }),
    ...(all === undefined ? {} : { all }),
    ...(none === undefined ? {} : { none }),
  };
  node.done();
  if ([match, any, all, none].every((one) => one === undefined))
    node.fail("match", "or any, all or none must stand here");
  return assertion;
}
