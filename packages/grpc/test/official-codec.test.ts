import * as sdk from "@a2a-js/sdk";
import { A2AService } from "@a2a-js/sdk/server/grpc";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { messageOf } from "../../a2a/test/model/arbitraries.ts";
import { fieldsOf, type MessageName } from "../../a2a/test/model/proto.ts";
import { decode } from "../src/protobuf/decode.ts";
import { encode } from "../src/protobuf/encode.ts";
import { serviceV1 } from "../src/services.ts";

/** Compares the bytes of our codec with those of the official SDK, by message and by field, in both directions. */

interface OfficialMessage {
  fromJSON(value: unknown): unknown;
  toJSON(message: unknown): Record<string, unknown>;
}

interface OfficialMethod {
  requestSerialize(message: unknown): Buffer;
  requestDeserialize(bytes: Buffer): unknown;
  responseSerialize(message: unknown): Buffer;
  responseDeserialize(bytes: Buffer): unknown;
}

const methods = A2AService as unknown as Readonly<Record<string, OfficialMethod>>;
const service = serviceV1();

/** Each message that is a request or an answer. The other messages are parts of them. */
const carried = [...service.operations].flatMap(([operation, { input, output }]) => {
  const method = methods[operation[0]?.toLowerCase() + operation.slice(1)] as OfficialMethod;
  return [
    { type: input, read: method.requestDeserialize, write: method.requestSerialize, what: `asks for ${operation}` },
    { type: output, read: method.responseDeserialize, write: method.responseSerialize, what: `answers ${operation}` },
  ].flatMap((each) => {
    const name = each.type.name.split(".").at(-1) as MessageName;
    return name in sdk ? [{ ...each, name }] : [];
  });
});

/** The official codec writes times before 1970 wrongly, with a negative part of a second. */
function withoutPast(message: object): object {
  const text = JSON.stringify(message).replaceAll(
    /"[01](\d{3})-(\d\d-\d\d)T/g,
    (_, year: string, day: string) => `"2${year}-${day === "02-29" ? "02-28" : day}T`,
  );
  return JSON.parse(text) as object;
}

test("every operation is compared, except empty answers", () => {
  const answers = carried.filter(({ what }) => what.startsWith("answers"));
  expect(carried.filter(({ what }) => what.startsWith("asks"))).toHaveLength(service.operations.size);
  expect(answers.map(({ what }) => what)).not.toContain("answers DeleteTaskPushNotificationConfig");
  expect(answers).toHaveLength(service.operations.size - 1);
});

describe.each(carried)("what $what, a $name", ({ name, type, read, write }) => {
  const official = (sdk as unknown as Record<string, OfficialMessage>)[name] as OfficialMessage;

  const alike = (made: object): void => {
    const message = withoutPast(made);
    expect(official.toJSON(read(Buffer.from(encode(type, message as never))))).toEqual(message);
    expect(decode(type, write(official.fromJSON(message)))).toEqual(message);
  };

  test.each(fieldsOf(name))("encodes %s the same", (field) => {
    const withField = messageOf(name, true).filter((message) => field in message);
    fc.assert(fc.property(withField, alike), { numRuns: 10 });
  });

  test("is the same on both sides", () => {
    fc.assert(fc.property(messageOf(name), alike), { numRuns: 100 });
  });
});
