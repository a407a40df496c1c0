import { operations, type Operation, type Repeat, type Step, type StepBase } from "./format.ts";
import { readExpecting, readExpectStream, readNamed } from "./read-expect.ts";
import type { StrictMap } from "./strict-map.ts";

/** Names of operations that stand in files besides those of ACTS §4.1. */
const otherNames: Readonly<Record<string, Operation>> = {
  set_push_notification_config: "create_push_config",
  create_push_notification_config: "create_push_config",
  get_push_notification_config: "get_push_config",
  list_push_notification_configs: "list_push_configs",
  delete_push_notification_config: "delete_push_config",
};

/** How each kind of step is read, by the key that it has. */
const kinds: Readonly<Record<string, (map: StrictMap, base: StepBase) => Step>> = {
  operation: (map, base) => ({ ...base, kind: "call", ...readCall(map), ...readExpecting(map) }),
  raw: readRaw,
  stream: readStream,
  deliveries: readDeliveries,
  assertion: (map, base) => ({
    ...base,
    kind: "assertion",
    assertion: readNamed(map.submap("assertion") as StrictMap),
  }),
  client_response(map, base) {
    map.any("client_response");
    map.any("expect_parsed");
    return { ...base, kind: "client" };
  },
};

/** Reads a step of a test. */
export function readStep(map: StrictMap): Step {
  map.any("description");
  const base: StepBase = {
    id: map.required("id"),
    assertions: map.submaps("assertions").map(readNamed),
    capture: map.textMap("capture"),
    delay: map.number("delay_ms") ?? 0,
  };
  const [read, ...others] = Object.entries(kinds).flatMap(([key, kind]) => (map.has(key) ? [kind] : []));
  if (read === undefined || others.length > 0) {
    const [first = "", ...rest] = Object.keys(kinds);
    return map.fail(first, `or one of ${rest.join(", ")} must stand here`);
  }
  const step = read(map, base);
  map.done();
  return step;
}

function readRaw(map: StrictMap, base: StepBase): Step {
  const raw = map.submap("raw") as StrictMap;
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
    ...readExpecting(map),
  };
  raw.done();
  const checks = ["expect", "expect_error", "expect_stream", "assertions"];
  if (!checks.some((key) => map.has(key))) {
    map.fail("expect", `or one of ${checks.slice(1).join(", ")} must stand here`);
  }
  return step;
}

function readStream(map: StrictMap, base: StepBase): Step {
  const read = map.number("read");
  const expectStream = map.submap("expect_stream");
  return {
    ...base,
    kind: "stream",
    stream: map.required("stream"),
    disconnect: map.flag("disconnect"),
    ...(read === undefined ? {} : { read }),
    ...(expectStream === undefined ? {} : { expectStream: readExpectStream(expectStream) }),
  };
}

function readDeliveries(map: StrictMap, base: StepBase): Step {
  const deliveries = map.submap("deliveries") as StrictMap;
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

function readCall(
  map: StrictMap,
): Pick<Step & { kind: "call" }, "operation" | "params" | "headers" | "repeat" | "read"> {
  const name = map.required("operation");
  const known =
    otherNames[name] ?? operations.find((one) => one === name) ?? map.fail("operation", `${name} is not known`);
  const params = map.map("params");
  const { extended, ...rest } = params;
  const repeat = map.submap("repeat");
  const read = map.number("read");
  return {
    // The official files ask for the extended card in two ways.
    operation: known === "get_agent_card" && extended === true ? "get_extended_agent_card" : known,
    params: known === "get_agent_card" ? rest : params,
    headers: Object.fromEntries(
      Object.entries(map.map("headers")).map(([header, value]) => [
        header.toLowerCase(),
        value === null || typeof value === "string" ? value : map.fail(`headers.${header}`, "is neither text nor null"),
      ]),
    ),
    ...(repeat === undefined ? {} : { repeat: readRepeat(repeat) }),
    ...(read === undefined ? {} : { read }),
  };
}

function readRepeat(map: StrictMap): Repeat {
  const repeat: Repeat = {
    until: map.required("until"),
    attempts: map.number("max_attempts") ?? 10,
    delay: map.number("delay_ms") ?? 1000,
    backoff: map.choice("backoff", ["none", "linear", "exponential"]) ?? "none",
  };
  map.done();
  return repeat;
}
