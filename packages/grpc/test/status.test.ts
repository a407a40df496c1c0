import { A2AError, wireErrors } from "@parley/a2a/model";
import { invalidParams, wireStatuses, type WireErrorCode } from "@parley/a2a/internal/model/index";
import { codecV1, type WireError } from "@parley/a2a/protocol";
import { describe, expect, test } from "vitest";
import { serviceV1, type A2AMethod } from "../src/services.ts";
import { statusCode, Statuses, type StatusName } from "../src/status.ts";
import { messageOf, oracleJson } from "./support/oracle.ts";

const statuses = new Statuses();
const detailsOf = (details: string | undefined) =>
  oracleJson(messageOf("google.rpc.Status"), Buffer.from(details ?? "", "base64"));

describe("errors", () => {
  test.each(Object.keys(wireErrors) as WireErrorCode[])(
    "%s has its status, and is decoded again (A2A 1.0 §5.4)",
    (code) => {
      const error = new A2AError(code, "It went wrong") as WireError;
      const status = statuses.of(error, codecV1);
      expect(status.code).toBe(statusCode(wireStatuses[code] as StatusName));
      expect(statuses.toError(status, codecV1)).toMatchObject({ code, message: "It went wrong" });
    },
  );

  test("of the protocol carry an ErrorInfo (§10.6)", () => {
    const error = new A2AError("TaskNotFound", "No such task", { metadata: { taskId: "t" } }) as WireError;
    const { code, message, details } = statuses.of(error, codecV1);
    expect([code, message]).toEqual([5, "No such task"]);
    expect(details).not.toContain("=");
    expect(detailsOf(details)).toEqual({
      code: 5,
      message: "No such task",
      details: [
        {
          "@type": "type.googleapis.com/google.rpc.ErrorInfo",
          reason: "TASK_NOT_FOUND",
          domain: "a2a-protocol.org",
          metadata: { taskId: "t" },
        },
      ],
    });
  });

  test("about fields carry a BadRequest, and temporary ones a RetryInfo", () => {
    const fields = [{ field: "message.parts", description: "must not be empty" }];
    expect(statuses.toError(statuses.of(invalidParams(fields) as WireError, codecV1), codecV1)).toMatchObject({
      fields,
    });
    const busy = new A2AError("TooManyRequests", "Slow down", { retryAfter: 1.5 }) as WireError;
    expect(statuses.toError(statuses.of(busy, codecV1), codecV1)).toMatchObject({
      code: "TooManyRequests",
      retryAfter: 1.5,
    });
  });

  describe("about fields of a message", () => {
    const { input } = serviceV1().operations.get("SendMessage") as A2AMethod;
    const sent = (field: string): unknown => {
      const { details } = statuses.of(invalidParams([{ field, description: "" }]) as WireError, codecV1, input);
      return (detailsOf(details) as { details: { fieldViolations: unknown }[] }).details[0]?.fieldViolations;
    };
    const read = (field: string): string | undefined => {
      const status = statuses.of(invalidParams([{ field, description: "" }]) as WireError, codecV1);
      return statuses.toError(status, codecV1, input).fields[0]?.field;
    };

    test.each([
      ["message.messageId", "message.message_id"],
      ["message.parts[1].mediaType", "message.parts[1].media_type"],
      ["message.parts", "message.parts"],
      ["configuration.taskPushNotificationConfig.url", "configuration.task_push_notification_config.url"],
      // Names inside a JSON value are the caller's, and so are unknown members.
      ["message.metadata.myKey", "message.metadata.myKey"],
      ["message.parts[0].data.fooBar", "message.parts[0].data.fooBar"],
      ["someThing.else", "someThing.else"],
    ])("%s is sent as %s, and read from both", (json, proto) => {
      expect(sent(json)).toEqual([{ field: proto }]);
      expect(read(proto)).toBe(json);
      expect(read(json)).toBe(json);
    });
  });

  test("with more details than headers hold leave out the large ones", () => {
    const fields = Array.from({ length: 500 }, (_, at) => ({ field: `parts[${at}]`, description: "is not valid" }));
    const { details, message } = statuses.of(invalidParams(fields, "x".repeat(5000)) as WireError, codecV1);
    expect(details?.length ?? 0).toBeLessThan(6000);
    expect(message).toHaveLength(1024);
    expect(JSON.stringify(detailsOf(details))).toContain("INVALID_PARAMS");
  });

  test("without details are decoded by their status", () => {
    expect(statuses.toError({ code: 5, message: "gone" }, codecV1)).toMatchObject({ code: "TaskNotFound" });
    expect(statuses.toError({ code: 99, message: "?" }, codecV1)).toMatchObject({ code: "InternalError" });
    expect(statuses.toError({ code: 14, message: "", details: "!!" }, codecV1)).toMatchObject({ code: "Unavailable" });
  });
});
