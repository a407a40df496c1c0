import { expect, test } from "vitest";
import { noSurfaces, reduceSurfaces } from "../../../src/extensions/a2ui/index.ts";

/* Agents that want a client to run out of memory. */

const messages = [{ version: "v0.9", createSurface: { surfaceId: "main", catalogId: "a" } }];
const event = (source: string, replay = false) => ({
  pieces: [{ source, append: false, messages }],
  messages,
  problems: [],
  replay,
});

test("a name of an artifact that is too long is not remembered, and its messages are applied", () => {
  const { surfaces } = reduceSurfaces(noSurfaces, event(`artifact t ${"a".repeat(1 << 16)}`));
  expect(surfaces.byId.has("main")).toBe(true);
  expect(surfaces.seen.size).toBe(0);
});

test("names of the longest identifiers that servers take are remembered (A2A 1.0 §4.1)", () => {
  const source = `artifact ${"t".repeat(1024)} ${"a".repeat(1024)}`;
  const { surfaces } = reduceSurfaces(noSurfaces, event(source));
  expect(surfaces.seen.get(source)).toBe(1);
  expect(reduceSurfaces(surfaces, event(source, true)).surfaces.byId.get("main")).toBe(surfaces.byId.get("main"));
});
