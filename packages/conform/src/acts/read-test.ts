import { defined } from "@parley/a2a/internal/base/defined";
import {
  levels,
  operations,
  transports,
  type CallStep,
  type CollectionMatch,
  type EventAssertion,
  type Expect,
  type ExpectError,
  type Expecting,
  type ExpectStream,
  type Json,
  type NamedAssertion,
  type Operation,
  type Repeat,
  type Step,
  type StepBase,
  type Suite,
  type Test,
} from "./format.ts";
import type { StrictMap } from "./strict-map.ts";
import { isList, isMap } from "./values.ts";

/** Defaults that tests inherit from their file. */
export interface FileDefaults {
  readonly version: string;
  readonly variables: Test["variables"];
}

export function readSuite(map: StrictMap, defaults: FileDefaults): Suite {
  const tags = map.texts("tags");
  map.any("description");
  return {
    id: map.required("id"),
    name: map.required("name"),
    tests: map.each("tests", (test) => readTest(test, tags, defaults)),
  };
}

function readTest(map: StrictMap, tags: readonly string[], defaults: FileDefaults): Test {
  map.any("origin");
  const test: Test = {
    id: map.required("id"),
    name: map.required("name"),
    ...defined({ description: map.text("description")?.trim(), specRef: map.text("spec_ref") }),
    level: map.choice("level", levels) ?? map.fail("level", "is missing"),
    tags: [...new Set([...tags, ...map.texts("tags")])],
    transports: map.choices("transport", transports),
    preconditions: map.nested("preconditions", readPreconditions) ?? noPreconditions,
    behaviors: map.texts("requires_behaviors"),
    needs: map.texts("runner_requirements"),
    requirements: map.texts("requirements"),
    steps: map.each("steps", readStep),
    assertions: map.each("assertions", readNamed),
    ...defaults,
  };
  if (test.steps.length === 0) map.fail("steps", "is missing");
  const ids = test.steps.map(({ id }) => id);
  const twice = ids.find((id, at) => ids.indexOf(id) !== at);
  if (twice !== undefined) map.fail("steps", `has two steps with the id ${twice}`);
  if (test.transports.length !== 1 && test.steps.some(({ kind }) => kind === "raw")) {
    map.fail("transport", "must name one binding, because the test has a raw step");
  }
  return test;
}

const noPreconditions: Test["preconditions"] = {
  capabilities: {},
  skills: [],
  transports: [],
  extensions: [],
  requiredExtension: false,
};

function readPreconditions(map: StrictMap): Test["preconditions"] {
  map.any("description");
  return {
    capabilities: map.map("capabilities"),
    skills: map.each("skills", (skill) => {
      skill.takeRest();
      return skill.required("id");
    }),
    transports: map.choices("transport", transports),
    extensions: map.texts("extensions"),
    requiredExtension: map.flag("required_extension"),
    ...defined({ refusesInput: map.text("refuses_input") }),
  };
}

/** Readers of steps, by the key that determines the kind of a step. */
const kinds: Readonly<Record<string, (map: StrictMap, base: StepBase) => Step>> = {
  operation: (map, base) => ({ ...base, kind: "call", ...readCall(map), ...readExpecting(map) }),
  raw: readRaw,
  stream: (map, base) => ({
    ...base,
    kind: "stream",
    stream: map.required("stream"),
    disconnect: map.flag("disconnect"),
    ...defined({ read: map.number("read"), expectStream: map.nested("expect_stream", readExpectStream) }),
  }),
  deliveries: (map, base) => ({
    ...base,
    kind: "deliveries",
    none: false,
    ...map.nested("deliveries", (deliveries) => ({
      none: deliveries.flag("none"),
      ...defined({ until: deliveries.any("until"), each: deliveries.any("each") }),
    })),
  }),
  assertion: (map, base) => ({
    ...base,
    kind: "assertion",
    assertion: map.nested("assertion", readNamed) ?? map.fail("assertion", "is missing"),
  }),
  client_response(map, base) {
    map.any("client_response");
    map.any("expect_parsed");
    return { ...base, kind: "client" };
  },
};

function readStep(map: StrictMap): Step {
  map.any("description");
  const base: StepBase = {
    id: map.required("id"),
    assertions: map.each("assertions", readNamed),
    capture: map.textMap("capture"),
    delay: map.number("delay_ms") ?? 0,
  };
  const [read, ...others] = Object.entries(kinds).flatMap(([key, kind]) => (map.has(key) ? [kind] : []));
  if (read !== undefined && others.length === 0) return read(map, base);
  const [first = "", ...rest] = Object.keys(kinds);
  return map.fail(first, `or exactly one of ${rest.join(", ")} is required`);
}

function readRaw(map: StrictMap, base: StepBase): Step {
  const raw = map.nested("raw", (request) => ({
    method: request.required("method"),
    path: request.required("path"),
    headers: request.textMap("headers"),
    literal: request.flag("literal"),
    ...defined({ body: request.any("body"), bodyRaw: request.text("body_raw") }),
  }));
  const checks = ["expect", "expect_error", "expect_stream", "assertions"];
  if (!checks.some((key) => map.has(key))) {
    map.fail("expect", `or one of ${checks.slice(1).join(", ")} is required`);
  }
  return { ...base, kind: "raw", ...(raw ?? map.fail("raw", "is missing")), ...readExpecting(map) };
}

/** Other names of operations in test files, in addition to the names of ACTS §4.1. */
const otherNames: Readonly<Record<string, Operation>> = {
  set_push_notification_config: "create_push_config",
  create_push_notification_config: "create_push_config",
  get_push_notification_config: "get_push_config",
  list_push_notification_configs: "list_push_configs",
  delete_push_notification_config: "delete_push_config",
};

function readCall(map: StrictMap): Pick<CallStep, "operation" | "params" | "headers" | "repeat" | "read"> {
  const name = map.required("operation");
  const operation =
    otherNames[name] ?? operations.find((one) => one === name) ?? map.fail("operation", `${name} is unknown`);
  const params = map.map("params");
  const { extended, ...rest } = params;
  return {
    // The official files request the extended card in two ways.
    operation: operation === "get_agent_card" && extended === true ? "get_extended_agent_card" : operation,
    params: operation === "get_agent_card" ? rest : params,
    headers: Object.fromEntries(
      Object.entries(map.map("headers")).map(([header, value]) => [
        header.toLowerCase(),
        value === null || typeof value === "string" ? value : map.fail(`headers.${header}`, "must be a string or null"),
      ]),
    ),
    ...defined({ repeat: map.nested("repeat", readRepeat), read: map.number("read") }),
  };
}

function readRepeat(map: StrictMap): Repeat {
  return {
    until: map.required("until"),
    attempts: map.number("max_attempts") ?? 10,
    delay: map.number("delay_ms") ?? 1000,
    backoff: map.choice("backoff", ["none", "linear", "exponential"]) ?? "none",
  };
}

function readExpecting(map: StrictMap): Expecting {
  return {
    credentials: map.choice("credentials", ["caller", "none", "invalid", "other"]) ?? "caller",
    ...defined({
      expect: map.nested("expect", readExpect),
      expectError: map.nested("expect_error", readExpectError),
      expectStream: map.nested("expect_stream", readExpectStream),
    }),
  };
}

/** Without a `body`, the other members describe it. `error: { exists: true }` and `status: error` mean any error. */
function readExpect(map: StrictMap): Expect {
  const status = map.any("status");
  const headers = map.any("headers");
  const orError = map.any("or_error") === true ? [] : map.has("or_error") ? map.texts("or_error") : undefined;
  const body = map.any("body");
  const error = map.any("error");
  const bare = body === undefined ? map.takeRest() : {};
  return {
    ...defined({
      status: status === "error" ? undefined : status,
      body: Object.keys(bare).length > 0 ? bare : body,
      headers,
      orError,
    }),
    error: status === "error" || (isMap(error) && error["exists"] === true),
  };
}

function readExpectError(map: StrictMap): ExpectError {
  const named = map.any("error_type") ?? map.any("code");
  const list = isMap(named) ? named["one_of"] : named;
  const types = (list === undefined ? [] : isList(list) ? list : [list]).map((one) =>
    typeof one === "string" ? one : map.fail("error_type", "must be the name of an error"),
  );
  return {
    types,
    ...defined({
      message: map.any("message"),
      details: map.any("details") ?? map.any("data"),
      status: map.any("status"),
      headers: map.any("headers"),
    }),
  };
}

function readExpectStream(map: StrictMap): ExpectStream {
  return {
    monotonic: map.choice("ordering", ["monotonic_state"]) !== undefined,
    events: map.each("events", readEvent),
    ...defined({
      minCount: map.number("min_count"),
      maxCount: map.number("max_count"),
      timeout: map.number("timeout_ms"),
      finalEvent: eventNames(map.any("final_event")),
      eachEvent: eventNames(map.any("each_event")),
      headers: map.any("headers"),
      eachRaw: map.any("each_raw"),
      sameUpdatesAs: map.text("same_updates_as"),
    }),
  };
}

function readEvent(map: StrictMap, position: number): EventAssertion {
  return {
    ...defined({ description: map.text("description") }),
    anywhere: map.choice("match", ["exact_position", "any_position"]) === "any_position",
    index: map.number("index") ?? position,
    assertion: eventNames(map.takeRest()) ?? {},
  };
}

/** Test files write the members of events in snake_case or camelCase. */
function eventNames(assertion: Json | undefined): Json | undefined {
  if (isList(assertion)) return assertion.map((one) => eventNames(one) ?? null);
  if (!isMap(assertion)) return assertion;
  return Object.fromEntries(
    Object.entries(assertion).map(([key, value]) => {
      if (key === "status_update") return ["statusUpdate", value];
      if (key === "artifact_update") return ["artifactUpdate", value];
      return [key, ["one_of", "any_of", "all_of", "not"].includes(key) ? (eventNames(value) ?? null) : value];
    }),
  );
}

/** An assertion about the results of earlier steps (ACTS §5.5). */
function readNamed(map: StrictMap): NamedAssertion {
  map.any("id");
  const checks = {
    match: map.any("match"),
    any: map.nested("any", readCollection),
    all: map.nested("all", readCollection),
    none: map.nested("none", readCollection),
  };
  if (Object.values(checks).every((one) => one === undefined)) map.fail("match", "or any, all or none is required");
  return {
    source: map.required("source"),
    ...defined({ description: map.text("description"), path: map.text("path"), ...checks }),
  };
}

function readCollection(map: StrictMap): CollectionMatch {
  return { path: map.required("path"), match: map.any("match") ?? map.fail("match", "is missing") };
}
