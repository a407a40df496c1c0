import { describe, expect, test } from "vitest";
import { A2AError, wireErrors, type A2AErrorCode, type WireErrorCode } from "../../src/model/index.ts";
import { codecV1 } from "../../src/wire/v1/index.ts";

const codes = Object.keys(wireErrors) as WireErrorCode[];
const { JSONRPC: jsonrpc, "HTTP+JSON": rest } = codecV1.bindings;

/** Returns the error that a client receives over JSON-RPC. */
function overJsonRpc(error: A2AError): A2AError {
  return jsonrpc.decodeError(JSON.parse(JSON.stringify(jsonrpc.encodeError(error))));
}

function overRest(error: A2AError): A2AError {
  const text = rest.encodeError(error);
  const { error: body } = JSON.parse(text) as { error: { code: number } };
  return rest.decodeError(body.code, JSON.parse(text));
}

const errorInfo = "type.googleapis.com/google.rpc.ErrorInfo";
const badRequest = "type.googleapis.com/google.rpc.BadRequest";

describe("errors keep all their members over both bindings", () => {
  test.each(codes)("%s", (code) => {
    for (const carry of [overJsonRpc, overRest]) {
      const bare = carry(new A2AError(code));
      expect(bare.code).toBe(code);
      expect(bare.message).toBe(wireErrors[code].message);
      const full = carry(
        new A2AError(code, "what happened", {
          fields: [{ field: "message.parts[0].text", description: "must be a string" }],
          metadata: { taskId: "t" },
          retryAfter: 7,
          details: [{ "@type": "example.com/Custom", more: 1 }],
          cause: new Error("postgres://user:secret@host"),
        }),
      );
      expect(full).toMatchObject({
        code,
        message: "what happened",
        fields: [{ field: "message.parts[0].text", description: "must be a string" }],
        metadata: { taskId: "t" },
        retryAfter: 7,
        details: [{ "@type": "example.com/Custom", more: 1 }],
      });
      expect(full.cause).toBeUndefined();
    }
  });

  test("the text of a cause is not sent over either binding", () => {
    const error = new A2AError("InternalError", undefined, { cause: new Error("secret") });
    expect(JSON.stringify(jsonrpc.encodeError(error))).not.toContain("secret");
    expect(rest.encodeError(error)).not.toContain("secret");
  });
});

describe("the JSON of", () => {
  test("an A2A error on JSON-RPC (A2A 1.0 §9.5)", () => {
    expect(jsonrpc.encodeError(new A2AError("TaskNotFound", undefined, { metadata: { taskId: "t" } }))).toEqual({
      code: -32001,
      message: "Task not found",
      data: [{ "@type": errorInfo, reason: "TASK_NOT_FOUND", domain: "a2a-protocol.org", metadata: { taskId: "t" } }],
    });
  });

  test("a validation error on JSON-RPC (§9.5)", () => {
    const error = new A2AError("InvalidParams", undefined, {
      fields: [{ field: "message.parts", description: "must hold at least one part" }],
    });
    expect(jsonrpc.encodeError(error)).toEqual({
      code: -32602,
      message: "Invalid parameters",
      data: [
        {
          "@type": badRequest,
          fieldViolations: [{ field: "message.parts", description: "must hold at least one part" }],
        },
      ],
    });
  });

  test("an A2A error on REST (§11.6)", () => {
    expect(JSON.parse(rest.encodeError(new A2AError("TaskNotCancelable")))).toEqual({
      error: {
        code: 400,
        status: "FAILED_PRECONDITION",
        message: "Task cannot be canceled",
        details: [{ "@type": errorInfo, reason: "TASK_NOT_CANCELABLE", domain: "a2a-protocol.org" }],
      },
    });
  });

  test("an error that JSON-RPC defines, on JSON-RPC: no details", () => {
    for (const code of ["ParseError", "InvalidRequest", "MethodNotFound", "InvalidParams", "InternalError"] as const) {
      expect(jsonrpc.encodeError(new A2AError(code))).toEqual({
        code: wireErrors[code].jsonrpc,
        message: wireErrors[code].message,
      });
    }
  });

  test("an error that a proxy got as a client, on REST: a status that its callers know", () => {
    const sent = (code: A2AErrorCode): unknown => JSON.parse(rest.encodeError(new A2AError(code, "no luck")));
    expect(sent("InvalidResponse")).toMatchObject({ error: { code: 500, message: "no luck" } });
    for (const code of ["ConnectionFailed", "ConnectionLost", "Timeout", "Aborted"] as const) {
      expect(sent(code)).toMatchObject({ error: { code: 503, status: "UNAVAILABLE" } });
    }
  });
});

describe("errors of other peers on JSON-RPC", () => {
  test.each<[string, unknown, A2AErrorCode]>([
    ["a code without data", { code: -32001, message: "no" }, "TaskNotFound"],
    [
      "an unspecific code with a reason",
      { code: -32603, message: "no", data: [{ "@type": errorInfo, reason: "TASK_NOT_CANCELABLE" }] },
      "TaskNotCancelable",
    ],
    [
      "a detail outside of an array",
      { code: -32000, message: "no", data: { "@type": errorInfo, reason: "VERSION_NOT_SUPPORTED" } },
      "VersionNotSupported",
    ],
    ["a string as data", { code: -32602, message: "no", data: "historyLength" }, "InvalidParams"],
    ["null as data", { code: -32601, message: "no", data: null }, "MethodNotFound"],
    [
      "an unknown reason",
      { code: -32005, message: "no", data: [{ "@type": errorInfo, reason: "BAD_WEATHER" }] },
      "ContentTypeNotSupported",
    ],
    ["an unknown code", { code: -32050, message: "no" }, "InternalError"],
    ["a code of the 1.1 draft", { code: -32010, message: "no" }, "TaskGenerationMismatch"],
  ])("%s", (_what, error, code) => {
    const decoded = jsonrpc.decodeError(error);
    expect(decoded.code).toBe(code);
    expect(decoded.message).toBe("no");
  });

  test("details of unknown types and unknown reasons are kept", () => {
    const fresh = { "@type": errorInfo, reason: "BAD_WEATHER", domain: "a2a-protocol.org", metadata: { sky: "grey" } };
    expect(jsonrpc.decodeError({ code: -32603, data: [fresh] })).toMatchObject({
      details: [fresh],
      metadata: { sky: "grey" },
    });
    const others = [{ "@type": "example.com/Custom" }, "text", 3, null];
    expect(jsonrpc.decodeError({ code: -32603, message: "no", data: others }).details).toEqual(others);
    expect(jsonrpc.decodeError({ code: -32603, message: "no", data: { taskId: "t" } }).details).toEqual([
      { taskId: "t" },
    ]);
  });

  test.each([undefined, null, "text", 3, [], {}, { code: "no" }])("%j is not an error of the protocol", (value) => {
    expect(jsonrpc.decodeError(value).code).toBe("InvalidResponse");
  });

  test("invalid details are ignored", () => {
    const data = [
      { "@type": badRequest },
      { "@type": badRequest, fieldViolations: [1, null, {}, { field: 3, description: "" }] },
      { "@type": errorInfo, reason: 3, metadata: { a: 1, b: "two", ["__proto__"]: "x" } },
      { "@type": "type.googleapis.com/google.rpc.RetryInfo", retryDelay: "soon" },
    ];
    const decoded = jsonrpc.decodeError(JSON.parse(JSON.stringify({ code: -32602, data })));
    expect(decoded).toMatchObject({ code: "InvalidParams", message: "Invalid parameters", metadata: { b: "two" } });
    expect(decoded.fields).toEqual([
      { field: "", description: "is not valid" },
      { field: "", description: "is not valid" },
    ]);
    expect(decoded.retryAfter).toBeUndefined();
  });
});

describe("errors of other peers on REST", () => {
  const status = (code: number, name: string): unknown => ({
    error: { code, status: name, message: "no", details: [] },
  });

  test.each<[string, number, unknown, A2AErrorCode]>([
    ["404", 404, status(404, "NOT_FOUND"), "TaskNotFound"],
    ["400 with FAILED_PRECONDITION", 400, status(400, "FAILED_PRECONDITION"), "UnsupportedOperation"],
    ["400 with INVALID_ARGUMENT", 400, status(400, "INVALID_ARGUMENT"), "InvalidParams"],
    ["409 of 1.0.0", 409, status(409, "FAILED_PRECONDITION"), "TaskNotCancelable"],
    ["415 of 1.0.0", 415, status(415, "INVALID_ARGUMENT"), "ContentTypeNotSupported"],
    ["502 of 1.0.0", 502, status(502, "INTERNAL"), "InvalidAgentResponse"],
    ["UNIMPLEMENTED of 1.0.0", 400, status(400, "UNIMPLEMENTED"), "UnsupportedOperation"],
    ["501", 501, status(501, "UNIMPLEMENTED"), "UnsupportedOperation"],
    [
      "a reason, with another status",
      500,
      { error: { code: 500, message: "no", details: [{ "@type": errorInfo, reason: "TASK_NOT_FOUND" }] } },
      "TaskNotFound",
    ],
    ["a body without the member error", 404, { code: 404, status: "NOT_FOUND", message: "no" }, "TaskNotFound"],
    ["a code of JSON-RPC", 400, { code: -32004, message: "no", data: {} }, "UnsupportedOperation"],
    [
      "problem details",
      404,
      { type: "https://a2a-protocol.org/errors/task-not-found", title: "no", status: 404 },
      "TaskNotFound",
    ],
    ["an error in the middle of a stream", 200, status(503, "UNAVAILABLE"), "Unavailable"],
  ])("%s", (_what, http, body, code) => {
    const decoded = rest.decodeError(http, body);
    expect(decoded.code).toBe(code);
    expect(decoded.message).toBe("no");
  });

  test("the fields in problem details are read (§6.6)", () => {
    const body = { status: 400, detail: "Invalid parameters", errors: [{ field: "pageSize", message: "too large" }] };
    expect(rest.decodeError(400, body)).toMatchObject({
      code: "InvalidParams",
      fields: [{ field: "pageSize", description: "too large" }],
    });
  });

  test.each<[number, A2AErrorCode]>([
    [400, "InvalidRequest"],
    [401, "Unauthenticated"],
    [403, "PermissionDenied"],
    [404, "MethodNotFound"],
    [405, "MethodNotAllowed"],
    [409, "TaskNotCancelable"],
    [413, "RequestTooLarge"],
    [415, "UnsupportedMediaType"],
    [418, "InvalidRequest"],
    [429, "TooManyRequests"],
    [500, "InternalError"],
    [502, "Unavailable"],
    [503, "Unavailable"],
    [504, "Unavailable"],
  ])("HTTP %i without an error body of the protocol is %s", (http, code) => {
    for (const body of [undefined, null, "<html>", [], {}]) {
      const decoded = rest.decodeError(http, body);
      expect(decoded.code).toBe(code);
      expect(decoded.message).toBe(`The peer answered with HTTP ${http}`);
    }
  });
});
