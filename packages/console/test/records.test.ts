import { spawnSync } from "node:child_process";
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { afterAll, expect, test } from "vitest";
import { asCurl } from "../app/code.ts";
import { isRecord } from "../app/records.ts";
import type { RequestRecord } from "../src/api.ts";
import { recordingFetch } from "../src/recording.ts";
import type { NewRecord } from "../src/wire-log.ts";

/* Session files come from anyone, and their requests are copied into terminals. */

const folder = mkdtempSync(join(tmpdir(), "parley-curl-"));
afterAll(() => rmSync(folder, { recursive: true }));
writeFileSync(join(folder, "curl"), `#!/bin/sh\nfor one in "$@"; do printf '%s\\0' "$one"; done\n`);
chmodSync(join(folder, "curl"), 0o755);

/** The arguments that curl gets when a POSIX shell runs a command. Fails if the shell prints or runs anything else. */
function argumentsOf(command: string): readonly string[] {
  const env = { ...process.env, PATH: `${folder}:${process.env["PATH"] ?? ""}` };
  const { stdout, stderr, status } = spawnSync("sh", [], { input: command, env, cwd: folder, encoding: "utf8" });
  expect({ stderr, status }).toEqual({ stderr: "", status: 0 });
  return stdout.split("\0").slice(0, -1);
}

/** The expected arguments of curl. An argument cannot contain NUL. */
function expected({ method, url, headers, body }: RequestRecord): readonly string[] {
  return [
    "--url",
    url,
    ...(method === "GET" ? [] : ["-X", method]),
    ...headers.flatMap(([name, value]) => ["-H", `${name}: ${value}`]),
    ...(body.bytes === 0 ? [] : ["--data-raw", body.text]),
  ].map((text) => text.replaceAll("\0", ""));
}

/** Any text, often with characters that are special for a shell, a terminal or curl. */
const text = fc
  .array(
    fc.oneof(
      fc.constantFrom(
        "'",
        '"',
        "\\",
        "$(id)",
        "`id`",
        "\n",
        "\r",
        "\t",
        "\0",
        "\x03",
        "\x1b[201~",
        "\x9b",
        ";",
        "&",
        "|",
        "-",
        "@",
        "!",
        "#",
      ),
      fc.string({ unit: "binary" }),
      fc.string({ unit: "grapheme" }),
    ),
    { maxLength: 8 },
  )
  .map((parts) => Buffer.from(parts.join("")).toString());

const record = fc.record({
  n: fc.constant(1),
  at: fc.constant(1),
  exchange: fc.constant(1),
  kind: fc.constant("request"),
  agent: text,
  method: fc.oneof(fc.constantFrom("GET", "POST", "SendMessage"), text),
  url: text,
  headers: fc.array(fc.tuple(fc.oneof(fc.constantFrom("x-a", "@file", "a:b"), text), text), { maxLength: 3 }),
  body: fc.record({ bytes: fc.nat(), text }),
});

const read = (value: unknown): RequestRecord | undefined =>
  isRecord(value) && value.kind === "request" ? value : undefined;

test("a copied curl command has exactly the arguments of the request, whatever a session file says", () => {
  fc.assert(
    fc.property(record, (given) => {
      const request = read(given);
      if (request !== undefined) expect(argumentsOf(asCurl(request))).toEqual(expected(request));
      // It has no control characters.
      if (request !== undefined) expect(asCurl(request)).not.toMatch(/[^\P{Cc}\n]/u);
    }),
    { numRuns: 300 },
  );
});

test("the command is quoted safely even for requests that a session file may not have", () => {
  fc.assert(
    fc.property(record, (given) => {
      const request: RequestRecord = { ...given, kind: "request" };
      expect(argumentsOf(asCurl(request))).toEqual(expected(request));
    }),
    { numRuns: 100 },
  );
});

const plain = { n: 1, at: 1, exchange: 1, kind: "request", agent: "a", method: "POST", url: "http://a/", headers: [] };
const body = { bytes: 2, text: "{}" };

test.each([["POST; id"], ["$(id)"], [""], ["POST\n"], ["-o"], ["A".repeat(65)]])(
  "a session file may not have the method %j",
  (method) => {
    expect(isRecord({ ...plain, body })).toBe(true);
    expect(isRecord({ ...plain, body, method: "SendMessage" })).toBe(true);
    expect(isRecord({ ...plain, body, method })).toBe(false);
  },
);

test.each([[["@/etc/passwd", "x"]], [["a b", "x"]], [["", "x"]], [["a"]], [["a", "b", "c"]]])(
  "a session file may not have the header %j",
  (header) => {
    expect(isRecord({ ...plain, body, headers: [["x-a", "b"]] })).toBe(true);
    expect(isRecord({ ...plain, body, headers: [header] })).toBe(false);
  },
);

test.each([
  [1 << 20, false],
  [(1 << 20) + 1, true],
  [2 << 20, true],
  [4 << 20, true],
])("of a body of %i ASCII characters, the log says whether it is cut", async (size, isCut) => {
  const records: NewRecord[] = [];
  const log = { nextExchange: () => 1, add: (one: NewRecord) => void records.push(one) };
  const sent = "x".repeat(size);
  const pieces = [sent.slice(0, 1 << 20), sent.slice(1 << 20)].map((piece) => new TextEncoder().encode(piece));
  const stream = new ReadableStream<Uint8Array>({
    start(controller) {
      for (const piece of pieces) controller.enqueue(piece);
      controller.close();
    },
  });
  const fetching = recordingFetch(
    log,
    "a",
    async () => new Response(stream),
    () => ({}),
  );
  const init = {
    method: "POST",
    headers: {},
    body: sent,
    redirect: "manual" as const,
    signal: new AbortController().signal,
  };
  await (await fetching("http://a/", init)).text();
  const bodies = records.flatMap((one) => ("body" in one ? [one.body] : []));
  expect(bodies.map(({ bytes, text: kept, isCut: cut = false }) => [bytes, kept.length, cut])).toEqual(
    [1, 2].map(() => [size, Math.min(size, 1 << 20), isCut]),
  );
});
