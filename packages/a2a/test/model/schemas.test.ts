import fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
  check,
  getTaskRequestSchema,
  listTasksRequestSchema,
  maxViolations,
  messageSchema,
  partSchema,
  sendMessageRequestSchema,
  taskSchema,
  taskStatusSchema,
  type CheckMode,
} from "../../src/model/index.ts";
import { messageOf } from "./arbitraries.ts";
import { fieldsOf, isMessageName, messageNames, oneOfOf, type FieldKind, type MessageName } from "./proto.ts";
import { schemas } from "./schema-table.ts";

/** Returns the fields with violations, or the checked value if there are no violations. */
function verdict(name: MessageName, value: unknown, mode: CheckMode = "request"): unknown {
  const result = check<unknown>(schemas[name], value, mode);
  return result.ok ? result.value : result.violations.map(({ field }) => field);
}

const noText = [0, -1.5, true, {}, [], ["a"]];
const noObject = [0, "text", true, []];

/** Invalid values for each type of the table. */
const wrong: Readonly<Record<string, readonly unknown[]>> = {
  string: noText,
  filled: [...noText, ""],
  id: [...noText, "a\0b", "half \ud800", "long".repeat(300)],
  bytes: [...noText, "a", "ab=c", "YQ=", "YQ===", "=", "é", "YWJj\n", "+_=="],
  bool: ["false", "true", "", 0, 1, {}, []],
  count: [-1, 1.5, 2 ** 31, 1e300, "1", "", true, {}, []],
  page: [0, 101, -1, 1.5, "50", true],
  Role: ["user", "ROLE_UNSPECIFIED", "role_user", "", 1, {}, []],
  TaskState: ["working", "TASK_STATE_CANCELLED", "task_state_working", "", 2, {}, []],
  Timestamp: [
    ...noText,
    "",
    "yesterday",
    "2026-01-31",
    "2026-01-31T12:00:00",
    "2026-13-01T00:00:00Z",
    "2026-02-30T00:00:00Z",
    "2026-01-31T24:30:00Z",
    "2026-01-31T12:00:00.Z",
    "9999-12-31T23:59:59-01:00",
  ],
  Struct: noObject,
};

function wrongFor(kind: FieldKind): readonly unknown[] {
  if (isMessageName(kind.base)) return noObject;
  return wrong[kind.base] ?? [];
}

/** Returns the ways to damage a field. Each way is a wrong value, and the path of the expected error. */
function damages(field: string, kind: FieldKind): readonly (readonly [unknown, string])[] {
  switch (kind.shape) {
    case "one":
      return wrongFor(kind).map((value) => [value, field]);
    case "list":
      return [
        ...[0, "text", true, {}].map((value) => [value, field] as const),
        ...[...wrongFor(kind), null].map((value) => [[value], `${field}[0]`] as const),
      ];
    case "map":
      return [
        ...noObject.map((value) => [value, field] as const),
        ...[...wrongFor(kind), null].map((value) => [{ key: value }, `${field}.key`] as const),
      ];
  }
}

/** Returns a full message, with only the given member of a oneof. */
function sampleOf(name: MessageName, field?: string): Record<string, unknown> {
  const choice = oneOfOf(name)?.of ?? [];
  const fits = (message: object): boolean => field === undefined || !choice.includes(field) || field in message;
  const [sample] = fc.sample(messageOf(name, true).filter(fits), { numRuns: 1, seed: 1 });
  return sample as unknown as Record<string, unknown>;
}

describe.each(messageNames)("%s: a wrong value is rejected with its path", (name) => {
  test.each(["text", 1, true, null, undefined, []])("as the message itself: %j", (value) => {
    expect(verdict(name, value)).toEqual([""]);
  });

  test.each(fieldsOf(name))("in %s", (field, kind) => {
    for (const mode of ["request", "copy"] as const) {
      for (const [value, path] of damages(field, kind)) {
        expect(verdict(name, { ...sampleOf(name, field), [field]: value }, mode), JSON.stringify(value)).toEqual([
          path,
        ]);
      }
    }
  });

  test.each(fieldsOf(name))("if %s is absent, null or empty, as the proto says (A2A 1.0 §5.7)", (field, kind) => {
    const { [field]: _, ...others } = sampleOf(name, field);
    const inOneOf = oneOfOf(name)?.of.includes(field) === true;
    const absent = kind.required ? [field] : inOneOf ? [""] : others;
    expect(verdict(name, { ...others })).toEqual(absent);
    const withNull = kind.base === "Value" ? { ...others, [field]: null } : absent;
    expect(verdict(name, { ...others, [field]: null })).toEqual(withNull);
    expect(verdict(name, { ...others, [field]: undefined }, "copy")).toEqual(absent);
  });
});

describe("input with several spellings", () => {
  test("an empty optional identifier counts as absent", () => {
    const message = { messageId: "m", role: "ROLE_USER", parts: [{ text: "" }] };
    expect(verdict("Message", { ...structuredClone(message), contextId: "", taskId: "" })).toEqual(message);
    expect(verdict("ListTasksRequest", { tenant: "", contextId: "", pageToken: "" })).toEqual({});
    expect(verdict("Part", { url: "https://example.com", filename: "", mediaType: "" })).toEqual({
      url: "https://example.com",
    });
  });

  test.each(["request", "answer"] as const)("fields may have the names of the proto, in a %s (§5.5)", (mode) => {
    const message = JSON.parse(
      '{"message_id":"m","context_id":"c","role":"ROLE_USER","parts":[{"data":{"not_a_field":1},"media_type":"a/b"}],"__proto__":{"x":1}}',
    ) as unknown;
    const request = { message, configuration: { history_length: 2, return_immediately: true } };
    expect(check(sendMessageRequestSchema, request, mode)).toMatchObject({
      ok: true,
      value: {
        message: { messageId: "m", contextId: "c", parts: [{ data: { not_a_field: 1 }, mediaType: "a/b" }] },
        configuration: { historyLength: 2, returnImmediately: true },
      },
    });
    expect(check(getTaskRequestSchema, { id: "t", history_length: 1, historyLength: 2 }, mode)).toEqual({
      ok: true,
      value: { id: "t", historyLength: 2 },
    });
    expect(check(getTaskRequestSchema, { id: 1, history_length: -1 }, mode)).toMatchObject({
      violations: expect.arrayContaining([
        expect.objectContaining({ field: "id" }),
        expect.objectContaining({ field: "historyLength" }),
      ]) as unknown,
    });
  });

  test("the unspecified state of protobuf is not a status filter", () => {
    expect(verdict("ListTasksRequest", { status: "TASK_STATE_UNSPECIFIED" })).toEqual({});
  });

  test.each([
    ["", ""],
    ["AA", "AA=="],
    ["AAA", "AAA="],
    ["_-8", "/+8="],
    ["_-8=", "/+8="],
    ["/+8=", "/+8="],
    ["AAAA", "AAAA"],
  ])("base64 %j becomes %j", (given, standard) => {
    expect(verdict("Part", { raw: given })).toEqual({ raw: standard });
  });

  test.each([
    ["2026-01-31T12:00:00Z", "2026-01-31T12:00:00.000Z"],
    ["2026-01-31T12:00:00.5Z", "2026-01-31T12:00:00.500Z"],
    ["2026-01-31T12:00:00.123456789Z", "2026-01-31T12:00:00.123Z"],
    ["2026-01-31T00:30:00+01:00", "2026-01-30T23:30:00.000Z"],
    ["2026-01-31t12:00:00z", "2026-01-31T12:00:00.000Z"],
    ["2024-02-29T00:00:00Z", "2024-02-29T00:00:00.000Z"],
  ])("time %s becomes %s (A2A 1.0 §5.6.1)", (given, utc) => {
    expect(verdict("TaskStatus", { state: "TASK_STATE_WORKING", timestamp: given })).toEqual({
      state: "TASK_STATE_WORKING",
      timestamp: utc,
    });
  });

  test("a null in free JSON stays, and so does a data part with null", () => {
    const part = { data: null, metadata: { none: null } };
    expect(verdict("Part", structuredClone(part))).toEqual(part);
  });

  test("a required array may be empty, except parts (§5.7)", () => {
    expect(verdict("AgentCard", { ...sampleOf("AgentCard"), skills: [] })).toMatchObject({ skills: [] });
    expect(verdict("ListTasksResponse", { tasks: [], nextPageToken: "", pageSize: 50, totalSize: 0 })).toMatchObject({
      tasks: [],
    });
    expect(verdict("Message", { ...sampleOf("Message"), parts: [] })).toEqual(["parts"]);
    expect(verdict("Artifact", { ...sampleOf("Artifact"), parts: [] })).toEqual(["parts"]);
    expect(verdict("AgentCard", { ...sampleOf("AgentCard"), supportedInterfaces: [] })).toEqual([
      "supportedInterfaces",
    ]);
  });

  test("free JSON is not checked inside, so its depth costs no stack", () => {
    const deep = JSON.parse(`${"[".repeat(20_000)}${"]".repeat(20_000)}`) as unknown;
    for (const mode of ["request", "copy", "answer"] as const) {
      expect(check(partSchema, { data: deep, metadata: { deep } }, mode).ok).toBe(true);
    }
  });

  test("text with NUL, text with half a surrogate pair and very long text stay as they are", () => {
    for (const text of ["a\0b", "half \ud800", "x".repeat(1_000_000), ""]) {
      expect(verdict("Part", { text })).toEqual({ text });
    }
  });
});

describe("unknown members", () => {
  test("are removed from a request and from a copy, and kept in an answer (A2A 1.0 §5.7)", () => {
    const task = { id: "t", status: { state: "TASK_STATE_WORKING", mood: "good" }, generation: "7" };
    const known = { id: "t", status: { state: "TASK_STATE_WORKING" } };
    expect(verdict("Task", structuredClone(task), "request")).toEqual(known);
    expect(verdict("Task", structuredClone(task), "copy")).toEqual(known);
    expect(verdict("Task", structuredClone(task), "answer")).toEqual(task);
  });

  test("with the name __proto__ do not change a prototype", () => {
    const text = `{"id":"t","status":{"state":"TASK_STATE_WORKING"},"__proto__":{"evil":1},"metadata":{"__proto__":{"evil":1}}}`;
    for (const mode of ["request", "copy", "answer"] as const) {
      const value = verdict("Task", JSON.parse(text), mode) as Record<string, unknown>;
      expect(value["evil"]).toBeUndefined();
      expect((value["metadata"] as Record<string, unknown>)["evil"]).toBeUndefined();
      expect(({} as Record<string, unknown>)["evil"]).toBeUndefined();
    }
    const scheme = { httpAuthSecurityScheme: { scheme: "Bearer" } };
    const schemes = JSON.parse(`{"a":${JSON.stringify(scheme)},"__proto__":${JSON.stringify(scheme)}}`) as object;
    const card = { ...sampleOf("AgentCard"), securitySchemes: schemes };
    for (const mode of ["copy", "request"] as const) {
      const checked = verdict("AgentCard", card, mode) as { securitySchemes: object };
      expect(Object.keys(checked.securitySchemes)).toEqual(["a"]);
      expect(Object.getPrototypeOf(checked.securitySchemes)).toBe(Object.prototype);
    }
  });
});

describe("modes", () => {
  const request = () => ({
    message: { messageId: "m", contextId: "", role: "ROLE_USER", parts: [{ raw: "_-8", extra: 1 }] },
    extra: 1,
  });
  const clean = { message: { messageId: "m", role: "ROLE_USER", parts: [{ raw: "/+8=" }] } };

  test("a request is corrected in place, without a copy", () => {
    const value = request();
    const result = check(sendMessageRequestSchema, value, "request");
    expect(result).toEqual({ ok: true, value: clean });
    expect(result.ok && result.value).toBe(value);
  });

  test("a copy does not change the original", () => {
    const value = Object.freeze(request());
    expect(check(sendMessageRequestSchema, value, "copy")).toEqual({ ok: true, value: clean });
    expect(value).toEqual(request());
  });

  test("an answer may lack the default values that protobuf encoders leave out", () => {
    expect(verdict("ListTasksResponse", {}, "answer")).toEqual({
      tasks: [],
      nextPageToken: "",
      pageSize: 0,
      totalSize: 0,
    });
    expect(verdict("Artifact", { artifactId: "a" }, "answer")).toEqual({ artifactId: "a", parts: [] });
    const card = { supportedInterfaces: [{ url: "https://a", protocolBinding: "JSONRPC", protocolVersion: "1.0" }] };
    expect(verdict("AgentCard", card, "answer")).toMatchObject({ ...card, name: "", capabilities: {}, skills: [] });
  });

  test("an answer must have its main members", () => {
    expect(verdict("Task", {}, "answer")).toEqual(["id", "status"]);
    expect(verdict("TaskStatus", {}, "answer")).toEqual(["state"]);
    expect(verdict("StreamResponse", {}, "answer")).toEqual([""]);
    expect(verdict("Part", { text: "a", url: "b" }, "answer")).toEqual([""]);
    expect(verdict("Message", { messageId: "m", parts: [{ text: "a" }] }, "answer")).toEqual(["role"]);
    expect(verdict("AgentCard", {}, "answer")).toEqual(["supportedInterfaces"]);
  });

  test("a card with an unknown kind of security scheme can be read", () => {
    const card = { ...sampleOf("AgentCard"), securitySchemes: { fresh: { quantumSecurityScheme: { q: 1 } } } };
    expect(verdict("AgentCard", structuredClone(card), "answer")).toEqual(card);
    expect(verdict("AgentCard", card, "request")).toEqual(["securitySchemes.fresh"]);
  });

  test("a time without a zone is UTC in an answer", () => {
    const status = { state: "TASK_STATE_WORKING", timestamp: "2026-01-31T12:00:00" };
    expect(check(taskStatusSchema, status, "answer")).toMatchObject({
      value: { timestamp: "2026-01-31T12:00:00.000Z" },
    });
  });
});

describe("violations", () => {
  test("are all collected, with their paths", () => {
    const value = {
      message: { role: "user", parts: [{ text: "fine" }, {}, { text: "a", raw: "b" }, 1, null, "hello", { text: {} }] },
      configuration: { returnImmediately: "false", historyLength: -1, acceptedOutputModes: "text/plain" },
      metadata: [],
    };
    expect(check(sendMessageRequestSchema, value, "request")).toMatchObject({
      ok: false,
      violations: [
        { field: "message.role", description: "must be one of ROLE_USER, ROLE_AGENT" },
        { field: "message.parts[1]", description: "must have exactly one of text, raw, url, data" },
        { field: "message.parts[2].raw", description: "must be base64" },
        { field: "message.parts[2]", description: "must have exactly one of text, raw, url, data" },
        { field: "message.parts[3]", description: "must be an object" },
        { field: "message.parts[4]", description: "must be an object" },
        { field: "message.parts[5]", description: "must be an object" },
        { field: "message.parts[6].text", description: "must be a string" },
        { field: "message.messageId", description: "is required" },
        { field: "configuration.returnImmediately", description: "must be true or false" },
        { field: "configuration.historyLength", description: "must be a whole number, 0 or more" },
        { field: "configuration.acceptedOutputModes", description: "must be an array" },
        { field: "metadata", description: "must be an object" },
      ],
    });
  });

  test("are limited in number", () => {
    const parts = Array.from({ length: 100_000 }, () => ({}));
    const result = check(messageSchema, { messageId: "m", role: "ROLE_USER", parts }, "request");
    expect(result.ok ? [] : result.violations).toHaveLength(maxViolations);
  });

  test.each(["constructor", "toString", "hasOwnProperty"])("a member with the name %s is not a field", (name) => {
    expect(check(partSchema, { text: "a", [name]: 1 }, "request")).toEqual({ ok: true, value: { text: "a" } });
    expect(check(taskSchema, { id: "t", status: { state: name } }, "request").ok).toBe(false);
  });

  test("a page has at most 100 tasks (A2A 1.0 §3.1.4)", () => {
    expect(check(listTasksRequestSchema, { pageSize: 100 }, "request").ok).toBe(true);
    expect(check(listTasksRequestSchema, { pageSize: 101 }, "request")).toMatchObject({
      violations: [{ field: "pageSize", description: "must be a whole number from 1 to 100" }],
    });
  });
});
