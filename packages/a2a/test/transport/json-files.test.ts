import { describe, expect, it, onTestFinished, vi } from "vitest";
import { toBase64 } from "../../src/model/index.ts";
import type { IncomingFiles } from "../../src/protocol/index.ts";
import { BodyPieces } from "../../src/transport/server/body-pieces.ts";
import { JsonBase64 } from "../../src/transport/server/json-base64.ts";
import { JsonFiles } from "../../src/transport/server/large-body.ts";

/* Tests large files in JSON text that arrives in pieces (`blobs`, docs/files.md). */

const placeholder = new Uint8Array(24).fill(1);
const inlineLength = 40;

interface Read {
  readonly text: string;
  readonly files: readonly string[];
}

/** Reads a text in pieces of this size. */
async function read(text: string, size = 1 << 20, textBytes = 10_000): Promise<Read> {
  const stored: string[] = [];
  const files: Pick<IncomingFiles, "store"> = {
    async store(bytes) {
      let content = "";
      for await (const piece of bytes) content += Buffer.from(piece).toString("latin1");
      stored.push(content);
      return placeholder;
    },
  };
  const bytes = new TextEncoder().encode(text);
  const source = new BodyPieces();
  let at = 0;
  source.from({
    pause() {},
    resume() {
      if (at >= bytes.length) source.end();
      else source.chunk(bytes.subarray(at, (at += size)));
    },
  });
  const json = new JsonFiles(source, {
    files: files as IncomingFiles,
    inlineLength,
    textBytes,
    windowBytes: 0,
  });
  return { text: new TextDecoder().decode(await json.read()), files: stored };
}

const content = Array.from({ length: 200 }, (_, at) => String.fromCharCode(at)).join("");
const base64 = Buffer.from(content, "latin1").toString("base64");
const standsFor = toBase64(placeholder);

const texts = (raw: string): string[] => [
  `{"jsonrpc":"2.0","params":{"message":{"parts":[{"text":"a \\"{[b"},{"raw":"${raw}","filename":"x"}],"taskId":"t"}},"id":1}`,
  `{ "message" : { "parts" : [ { "raw" : "${raw}" } ] }, "metadata": {"raw": "${base64}"} }`,
  `{"params":{"message":{"parts":[{"kind":"file","file":{"bytes":"${raw}","name":"ü"}}]}}}`,
  `{"message":{"content":[{"file":{"fileWithBytes":"${raw}"}},{"file":{"file_with_bytes":"${raw}"}}]}}`,
  `{"request":{"content":[{"data":{"data":[[[[[[[[{"a":"b"}]]]]]]]]}},{"file":{"fileWithBytes":"${raw}"}}]}}`,
];

describe("large files in JSON text", () => {
  it("are extracted wherever a version has them, in pieces of any size, and nothing else changes", async () => {
    for (const size of [1, 2, 3, 7, 64, 100_000]) {
      for (const text of texts(base64)) {
        const got = await read(text, size);
        const where = text.split("file_with_bytes").length + text.split(/"(?:raw|bytes|fileWithBytes)" ?:/).length - 2;
        const inMetadata = text.includes("metadata") ? 1 : 0;
        expect(got.files).toEqual(Array.from({ length: where - inMetadata }, () => content));
        const metadata = `{"raw": "${base64}"}`;
        const expected = text.replace(metadata, "{}").replaceAll(base64, standsFor).replace("{}", metadata);
        expect(got.text).toBe(expected);
      }
    }
  });

  it("are decoded with the escapes of JSON, in both alphabets, with and without padding", async () => {
    const forms = [
      base64.replaceAll("/", "\\/"),
      base64.replaceAll("+", "\\u002B").replaceAll("=", "\\u003d").replaceAll("/", "\\u002f"),
      base64.replaceAll("=", ""),
      base64.replaceAll("+", "-").replaceAll("/", "_"),
      base64.replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", ""),
    ];
    for (const form of forms) {
      for (const size of [1, 5, 1000]) {
        expect(await read(`{"message":{"parts":[{"raw":"${form}"}]}}`, size)).toEqual({
          text: `{"message":{"parts":[{"raw":"${standsFor}"}]}}`,
          files: [content],
        });
      }
    }
  });

  it("stay in place if they are short, elsewhere, or do not begin as base64", async () => {
    const same = [
      `{"message":{"parts":[{"raw":"${base64.slice(0, inlineLength)}"}]}}`,
      `{"message":{"parts":[{"r\\u0061w":"${base64}"},{"text":"${base64}"},{"data":{"raw":"${base64}"}}]}}`,
      `{"message":{"metadata":{"parts":[{"raw":"${base64}"}]},"raw":"${base64}"},"raw":"${base64}"}`,
      `{"message":{"parts":[{"raw":"a\\\\"},{"raw":"a\\"b\\n"},{"raw":"é${base64}"},{"raw":""}]}}`,
      `["message",{"parts":[{"raw":"${base64}"}]}]`,
      "",
      "{",
    ];
    for (const text of same) {
      for (const size of [1, 3, 1000]) expect(await read(text, size)).toEqual({ text, files: [] });
    }
  });

  it("are not looked for in short strings, however many there are", async () => {
    const pushed = vi.spyOn(JsonBase64.prototype, "push");
    onTestFinished(() => pushed.mockRestore());
    const text = `{"message":{"parts":[${`{"raw":""},{"raw":"AA\\/A"},`.repeat(5000)}{}]}}`;
    expect((await read(text, 1 << 20, 1 << 20)).text).toBe(text);
    // Each piece of 64 KiB has at most one such string: the string in which the piece ends.
    expect(pushed.mock.calls.length).toBeLessThan(8);
  });

  it("are rejected if they are not base64, break off, or the rest is too large", async () => {
    const part = (raw: string): string => `{"message":{"parts":[{"text":"a"},{"raw":"${raw}`;
    const long = "A".repeat(80);
    for (const bad of ["*", "=A", "\\n", "\\u0041\\u00e9", "-+", "A===", "A"]) {
      await expect(read(`${part(long + bad)}"}]}}`, 9)).rejects.toMatchObject({
        code: "InvalidParams",
        fields: [{ field: "message.parts[1].raw", description: "must be base64" }],
      });
    }
    await expect(read(part(long), 9)).rejects.toMatchObject({ code: "ParseError" });
    await expect(read(`{"text":"${"a".repeat(200)}"}`, 9, 100)).rejects.toMatchObject({ code: "RequestTooLarge" });
  });
});
