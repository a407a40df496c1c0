import { expect, test } from "vitest";
import { noSurfaces, reduceSurfaces } from "../../src/a2ui/index.ts";
import { readMessages, report } from "../../src/a2ui/parts.ts";
import { clientMessage } from "../../src/a2ui/schemas.ts";
import { silentLogger } from "@parley/a2a/internal/base/index";

/* Peers that try to exhaust the memory of a client or a log. */

const messages = [{ version: "v0.9", createSurface: { surfaceId: "main", catalogId: "a" } }];
const event = (source: string, replay = false) => ({
  pieces: [{ source, append: false, messages }],
  messages,
  problems: [],
  replay,
});

test("a source with too long a name is not remembered, but its messages are applied", () => {
  const { surfaces } = reduceSurfaces(noSurfaces, event(`artifact t ${"a".repeat(1 << 16)}`));
  expect(surfaces.byId.has("main")).toBe(true);
  expect(surfaces.seen.size).toBe(0);
});

test("sources with the longest accepted ids are remembered (A2A 1.0 §4.1)", () => {
  const source = `artifact ${"t".repeat(1024)} ${"a".repeat(1024)}`;
  const { surfaces } = reduceSurfaces(noSurfaces, event(source));
  expect(surfaces.seen.get(source)).toBe(1);
  expect(reduceSurfaces(surfaces, event(source, true)).surfaces.byId.get("main")).toBe(surfaces.byId.get("main"));
});

test("log entries stay short for long member names", () => {
  const lines: string[] = [];
  const logger = { ...silentLogger, warn: (...line: unknown[]) => void lines.push(JSON.stringify(line)) };
  const { problems } = readMessages(clientMessage["0.9"], [{ version: "v0.9", action: {}, ["x".repeat(1 << 16)]: 1 }]);
  const named = { index: 0, path: `/${"x".repeat(1 << 16)}`, message: "is not a field of this message" };
  report({ logger, uri: "urn:a", taskId: "t" }, "A message was left out", [...problems, named]);
  expect(lines.length).toBe(problems.length + 1);
  for (const line of lines) expect(line.length).toBeLessThan(1000);
});
