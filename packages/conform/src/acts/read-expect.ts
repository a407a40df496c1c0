import type {
  CollectionMatch,
  Credentials,
  EventAssertion,
  Expect,
  ExpectError,
  ExpectStream,
  Json,
  NamedAssertion,
} from "./format.ts";
import { isMap } from "./path.ts";
import type { StrictMap } from "./strict-map.ts";

/** What a call or a raw step expects, and whose credentials it carries. */
export function readExpecting(map: StrictMap): {
  readonly credentials: Credentials;
  readonly expect?: Expect;
  readonly expectError?: ExpectError;
  readonly expectStream?: ExpectStream;
} {
  const expect = map.submap("expect");
  const expectError = map.submap("expect_error");
  const expectStream = map.submap("expect_stream");
  return {
    credentials: map.choice("credentials", ["caller", "none", "invalid", "other"]) ?? "caller",
    ...(expect === undefined ? {} : { expect: readExpect(expect) }),
    ...(expectError === undefined ? {} : { expectError: readExpectError(expectError) }),
    ...(expectStream === undefined ? {} : { expectStream: readExpectStream(expectStream) }),
  };
}

/** Without a `body` the members themselves describe it; `error: { exists: true }` and `status: error` mean any error. */
function readExpect(map: StrictMap): Expect {
  const status = map.any("status");
  const headers = map.any("headers");
  const orError = map.any("or_error") === true ? [] : map.has("or_error") ? map.texts("or_error") : undefined;
  const body = map.any("body");
  const errorMember = map.any("error");
  const error = status === "error" || (isMap(errorMember) && errorMember["exists"] === true);
  const bare = map.rest();
  const whole = body ?? (Object.keys(bare).length === 0 ? undefined : bare);
  if (body !== undefined && Object.keys(bare).length > 0) map.done();
  return {
    ...(status === undefined || status === "error" ? {} : { status }),
    ...(whole === undefined ? {} : { body: whole }),
    ...(headers === undefined ? {} : { headers }),
    error,
    ...(orError === undefined ? {} : { orError }),
  };
}

function readExpectError(map: StrictMap): ExpectError {
  const named = map.any("error_type") ?? map.any("code");
  const list = isMap(named) ? named["one_of"] : named;
  const types = (Array.isArray(list) ? (list as readonly Json[]) : list === undefined ? [] : [list]).map((one) =>
    typeof one === "string" ? one : map.fail("error_type", "is not the name of an error"),
  );
  const message = map.any("message");
  const details = map.any("details") ?? map.any("data");
  const status = map.any("status");
  const headers = map.any("headers");
  map.done();
  return {
    types,
    ...(message === undefined ? {} : { message }),
    ...(details === undefined ? {} : { details }),
    ...(status === undefined ? {} : { status }),
    ...(headers === undefined ? {} : { headers }),
  };
}

export function readExpectStream(map: StrictMap): ExpectStream {
  const optional = <K extends string, T>(key: K, value: T | undefined): { readonly [key in K]?: T } =>
    (value === undefined ? {} : { [key]: value }) as { readonly [key in K]?: T };
  const stream: ExpectStream = {
    ...optional("minCount", map.number("min_count")),
    ...optional("maxCount", map.number("max_count")),
    ...optional("timeout", map.number("timeout_ms")),
    monotonic: map.choice("ordering", ["monotonic_state"]) !== undefined,
    events: map.submaps("events").map(readEvent),
    ...optional("finalEvent", eventNames(map.any("final_event"))),
    ...optional("eachEvent", eventNames(map.any("each_event"))),
    ...optional("headers", map.any("headers")),
    ...optional("eachRaw", map.any("each_raw")),
    ...optional("sameUpdatesAs", map.text("same_updates_as")),
  };
  map.done();
  return stream;
}

function readEvent(map: StrictMap, position: number): EventAssertion {
  const description = map.text("description");
  const anywhere = map.choice("match", ["exact_position", "any_position"]) === "any_position";
  const index = map.number("index") ?? position;
  return {
    ...(description === undefined ? {} : { description }),
    anywhere,
    index,
    assertion: eventNames(map.rest()) ?? {},
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

/** An assertion on what earlier steps kept (ACTS §5.5). */
export function readNamed(map: StrictMap): NamedAssertion {
  map.any("id");
  const description = map.text("description");
  const path = map.text("path");
  const match = map.any("match");
  const collection = (key: string): CollectionMatch | undefined => {
    const one = map.submap(key);
    if (one === undefined) return undefined;
    const found = { path: one.required("path"), match: one.any("match") ?? one.fail("match", "is missing") };
    one.done();
    return found;
  };
  const [any, all, none] = [collection("any"), collection("all"), collection("none")];
  const assertion: NamedAssertion = {
    source: map.required("source"),
    ...(description === undefined ? {} : { description }),
    ...(path === undefined ? {} : { path }),
    ...(match === undefined ? {} : { match }),
    ...(any === undefined ? {} : { any }),
    ...(all === undefined ? {} : { all }),
    ...(none === undefined ? {} : { none }),
  };
  map.done();
  if ([match, any, all, none].every((one) => one === undefined))
    map.fail("match", "or any, all or none must stand here");
  return assertion;
}
