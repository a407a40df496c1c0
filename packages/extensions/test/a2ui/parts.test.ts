import { describe, expect, test } from "vitest";
import { a2ui, type A2uiVersion } from "../../src/a2ui/index.ts";
import { isPartOf, readParts, writeParts } from "../../src/a2ui/parts.ts";
import { clientMessage, serverMessage } from "../../src/a2ui/schemas.ts";
import type { JsonValue, Part } from "@parley/a2a/internal/model/index";

/* A2UI, docs/a2ui_extension_specification.md of each version: "Data encoding" and "Processing Rules". */

const older = "application/json+a2ui";
const newer = "application/a2ui+json";
const versions: readonly A2uiVersion[] = ["0.8", "0.9", "0.9.1", "0.10"];

const remove09 = { version: "v0.9", deleteSurface: { surfaceId: "a" } };
const update08 = { surfaceUpdate: { surfaceId: "a", components: [{ id: "a", component: { Text: {} } }] } };

function part(data: JsonValue, mimeType = newer): Part {
  return { data, metadata: { mimeType } };
}

const readers = (of: Part): readonly A2uiVersion[] => versions.filter((version) => isPartOf(version, of));
const read = (of: readonly Part[], maxBytes = 10_000) => readParts("0.9", serverMessage["0.9"], maxBytes, of);

describe("a part of A2UI", () => {
  test.each<[A2uiVersion, string]>([
    ["0.8", older],
    ["0.9", older],
    ["0.9.1", newer],
    ["0.10", newer],
  ])("has in %s the media type %s, in its metadata and as its own", (version, mediaType) => {
    const action = { name: "a", surfaceId: "b", sourceComponentId: "c", timestamp: "2026-01-01T00:00:00Z" };
    const sent = a2ui({ version }).action(action);
    const content = { ...action, context: {} };
    expect(sent).toEqual({
      data: version === "0.8" ? { userAction: content } : [{ version: `v${version}`, action: content }],
      mediaType,
      metadata: { mimeType: mediaType },
    });
    expect(readers(sent)).toContain(version);
  });

  test("is recognized by either media type, in either place, in any case, with parameters", () => {
    const list = [remove09];
    for (const found of [
      part(list, older),
      part(list, newer),
      { data: list, mediaType: newer },
      { data: list, mediaType: "Application/A2UI+JSON; charset=utf-8" },
    ])
      expect(readers(found)).toEqual(["0.9", "0.9.1"]);
    for (const other of [
      { data: list },
      { data: list, mediaType: "application/json" },
      { data: list, metadata: { mimeType: 5 } },
      { text: "x", mediaType: newer },
    ])
      expect(readers(other)).toEqual([]);
  });

  test("belongs to the version of its messages, so two versions can be active", () => {
    expect(readers(part([{ ...remove09, version: "v0.9.1" }]))).toEqual(["0.9.1"]);
    expect(readers(part([{ ...remove09, version: "v0.10" }]))).toEqual(["0.10"]);
    expect(readers(part(update08))).toEqual(["0.8"]);
    // Each version reports the problem of an empty part.
    expect(readers(part([{ deleteSurface: { surfaceId: "a" } }]))).toEqual(versions);
    expect(readers(part([]))).toEqual(versions);
    expect(readers(part("text"))).toEqual(versions);
  });

  test("in 0.8 is one message or a list", () => {
    const check = serverMessage["0.8"];
    expect(readParts("0.8", check, 1000, [part(update08), part([update08, update08])]).messages).toHaveLength(3);
    expect(writeParts("0.8", check, 1000, [update08, update08])).toHaveLength(2);
  });
});

describe("the messages of a part", () => {
  test("are checked one by one: an invalid one is left out, and later ones apply", () => {
    const { messages, problems } = read([
      part([remove09, { version: "v0.9", deleteSurface: { surfaceId: 5 } }, "text", remove09]),
      part([{ version: "v0.9", updateComponents: { surfaceId: "main", components: [] } }]),
    ]);
    expect(messages).toEqual([remove09, remove09]);
    expect(problems).toMatchObject([
      { index: 1, path: "/deleteSurface/surfaceId" },
      { index: 2, path: "" },
      { index: 0, path: "/updateComponents/components", surfaceId: "main" },
    ]);
  });

  test("are ignored in a part that is not a list, too large or too deep", () => {
    let deep: JsonValue = 1;
    for (let level = 0; level < 10_000; level += 1) deep = [deep];
    const value = (content: JsonValue) => [{ version: "v0.9", updateDataModel: { surfaceId: "a", value: content } }];
    expect(read([part({ messages: [remove09] })]).problems).toMatchObject([
      { message: "must be an array of messages" },
    ]);
    expect(read([part(value(deep))]).problems).toMatchObject([{ message: "must not have more than 64 levels" }]);
    expect(read([part(value("é".repeat(6000)))]).problems).toMatchObject([
      { message: "must not be larger than 10000 bytes" },
    ]);
    // The bound is of bytes, and of each part.
    expect(read([part(value("e".repeat(6000))), part(value("e".repeat(6000)))]).messages).toHaveLength(2);
  });

  test("report at most a hundred problems", () => {
    const { messages, problems } = read([part([...Array<number>(3000).fill(0), remove09]), part([{}])]);
    expect([messages.length, problems.length]).toEqual([1, 100]);
  });
});

describe("written parts", () => {
  const write = (...messages: readonly object[]) => writeParts("0.9", clientMessage["0.9"], 1000, messages);

  test("are checked", () => {
    expect(() => write({ version: "v0.9", action: { name: "a" } })).toThrow(
      "Message 0 is not a message of A2UI 0.9: /action/surfaceId is required",
    );
    expect(() => write({ version: "v0.9", error: { code: "a", message: "b".repeat(2000), surfaceId: "c" } })).toThrow(
      "larger than 1000 bytes",
    );
    expect(() => a2ui({ version: "0.9" }).error({ code: "VALIDATION_FAILED", message: "a", surfaceId: "b" })).toThrow(
      "/error/path is required",
    );
  });

  test("have no undefined members", () => {
    const error = { code: "a", message: "b", surfaceId: "c", path: undefined };
    expect(write({ version: "v0.9", error })[0]?.data).toEqual([
      { version: "v0.9", error: { code: "a", message: "b", surfaceId: "c" } },
    ]);
  });

  test("have the current time by default", () => {
    const before = Date.now();
    const { data } = a2ui({ version: "0.10" }).action({ name: "a", surfaceId: "b", sourceComponentId: "c" });
    const [{ action }] = data as unknown as readonly [{ readonly action: { readonly timestamp: string } }];
    expect(Date.parse(action.timestamp)).toBeGreaterThanOrEqual(before);
  });
});
