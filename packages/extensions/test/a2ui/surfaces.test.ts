import { MessageProcessor, type A2uiMessage } from "@a2ui/web_core/v0_9";
import { basicCatalog } from "@a2ui/web_core/v0_9/basic_catalog";
import fc from "fast-check";
import { describe, expect, onTestFinished, test, vi } from "vitest";
import {
  noSurfaces,
  reduceSurfaces,
  type A2uiEvent,
  type A2uiServerMessage,
  type A2uiServerMessage08,
  type A2uiSurface,
  type A2uiSurfaces,
} from "../../src/a2ui/index.ts";
import { sizeOf } from "../../src/a2ui/data-model.ts";
import type { JsonValue } from "@parley/a2a/internal/model/index";

/* A2UI 0.9, "Data model updates: synchronization and convergence"; 0.8 §1.4 and §4.2. */

const version = "v0.9";
const catalogId = basicCatalog.id;
const text = (id: string, value: string) => ({ id, component: "Text", text: value });

function made(...more: readonly A2uiServerMessage[]): readonly A2uiServerMessage[] {
  return [{ version, createSurface: { surfaceId: "main", catalogId } }, ...more];
}

const set = (path: string, value?: JsonValue): A2uiServerMessage => ({
  version,
  updateDataModel: { surfaceId: "main", path, ...(value !== undefined && { value }) },
});

function main(surfaces: A2uiSurfaces): A2uiSurface {
  const surface = surfaces.byId.get("main");
  if (surface === undefined) throw new Error("There is no surface main");
  return surface;
}

/** The bytes that a state reports, counted again. */
function counted({ byId }: A2uiSurfaces): number {
  let bytes = 0;
  for (const { surfaceId, catalogId: catalog, root, theme, components, dataModel } of byId.values()) {
    bytes += 1024 + sizeOf([surfaceId, catalog, root, theme]) + sizeOf(dataModel);
    for (const component of components.values()) bytes += 64 + sizeOf(component);
  }
  return bytes;
}

describe("surfaces of 0.9", () => {
  test("are ready once their root exists, and keep earlier content", () => {
    const first = reduceSurfaces(
      noSurfaces,
      made({ version, updateComponents: { surfaceId: "main", components: [text("a", "A")] } }),
    );
    expect(main(first.surfaces)).toMatchObject({ catalogId, isReady: false, sendDataModel: false, dataModel: {} });
    const update = {
      version,
      updateComponents: { surfaceId: "main", components: [text("root", "R"), text("a", "B")] },
    };
    const second = reduceSurfaces(first.surfaces, [update]);
    expect(main(second.surfaces).isReady).toBe(true);
    expect([...main(second.surfaces).components.values()]).toEqual([text("a", "B"), text("root", "R")]);
    // The first state is unchanged.
    expect([...main(first.surfaces).components.values()]).toEqual([text("a", "A")]);
    expect([...first.problems, ...second.problems]).toEqual([]);
  });

  test("data is set, created, removed and replaced by JSON pointers", () => {
    const steps: readonly (readonly [A2uiServerMessage, JsonValue])[] = [
      [set("/user/name", "Ada"), { user: { name: "Ada" } }],
      [set("/user/tags/0", "a"), { user: { name: "Ada", tags: ["a"] } }],
      [set("/user/tags/2", "c"), { user: { name: "Ada", tags: ["a", null, "c"] } }],
      [set("/user/tags/0"), { user: { name: "Ada", tags: [null, null, "c"] } }],
      [set("/user/tags"), { user: { name: "Ada" } }],
      [set("/a~1b/~0c", 1), { user: { name: "Ada" }, "a/b": { "~c": 1 } }],
      [set("/nothing/here"), { user: { name: "Ada" }, "a/b": { "~c": 1 } }],
      [set("/user/name", null), { user: { name: null }, "a/b": { "~c": 1 } }],
      [set("/", { all: "new" }), { all: "new" }],
      [{ version, updateDataModel: { surfaceId: "main" } }, {}],
    ];
    let { surfaces } = reduceSurfaces(noSurfaces, made());
    for (const [message, expected] of steps) {
      const before = main(surfaces).dataModel;
      const copy = structuredClone(before);
      const after = reduceSurfaces(surfaces, [message]);
      expect(after.problems).toEqual([]);
      expect(main(after.surfaces).dataModel).toEqual(expected);
      expect(before).toEqual(copy);
      expect(after.surfaces.bytes).toBe(counted(after.surfaces));
      surfaces = after.surfaces;
    }
  });

  test("a message that cannot be applied is left out as a whole, and later ones apply", () => {
    const { surfaces, problems } = reduceSurfaces(noSurfaces, [
      set("/a", 1),
      ...made(set("/a", "text")),
      { version, createSurface: { surfaceId: "main", catalogId: "another" } },
      set("/a/b/c", 1),
      set("/list/x", 1),
      set("/list", []),
      set("/list/x", 1),
      set("/list/10000", 1),
      set("/__proto__/polluted", 1),
      set("/x/constructor", 1),
      set(`/${"a/".repeat(65)}`, 1),
      { version, deleteSurface: { surfaceId: "other" } },
      set("/b", 2),
    ]);
    expect(problems.map(({ index, path, surfaceId }) => [index, path, surfaceId])).toEqual([
      [0, "", "main"],
      [3, "/createSurface/surfaceId", "main"],
      [4, "/updateDataModel/path", "main"],
      [7, "/updateDataModel/path", "main"],
      [8, "/updateDataModel/path", "main"],
      [9, "/updateDataModel/path", "main"],
      [10, "/updateDataModel/path", "main"],
      [11, "/updateDataModel/path", "main"],
      [12, "", "other"],
    ]);
    expect(main(surfaces)).toMatchObject({ catalogId, dataModel: { a: "text", list: [], b: 2 } });
    expect(Object.hasOwn(Object.prototype, "polluted")).toBe(false);
  });

  test("a surface is deleted, and can be created again", () => {
    const { surfaces } = reduceSurfaces(noSurfaces, made({ version, deleteSurface: { surfaceId: "main" } }));
    expect(surfaces).toEqual(noSurfaces);
    expect(reduceSurfaces(surfaces, made()).problems).toEqual([]);
  });

  test("only new messages of a task that is read again are applied", () => {
    const event = (pieces: A2uiEvent["pieces"], replay = false): A2uiEvent => ({
      pieces,
      messages: pieces.flatMap(({ messages }) => messages),
      problems: [],
      replay,
    });
    const piece = (source: string, messages: A2uiEvent["messages"], append = false) => ({ source, append, messages });
    const first = reduceSurfaces(noSurfaces, event([piece("artifact t a", made(set("/a", 1)))])).surfaces;
    const second = reduceSurfaces(first, event([piece("artifact t a", [set("/b", 2)], true)])).surfaces;
    const typed = reduceSurfaces(second, [set("/a", "typed")]).surfaces;
    const whole = [
      piece("message m", [{ version, createSurface: { surfaceId: "other", catalogId } }]),
      piece("artifact t a", made(set("/a", 1), set("/b", 2), set("/c", 3))),
    ];
    const after = reduceSurfaces(typed, event(whole, true));
    expect(after.problems).toEqual([]);
    expect(main(after.surfaces).dataModel).toEqual({ a: "typed", b: 2, c: 3 });
    expect([...after.surfaces.byId.keys()]).toEqual(["main", "other"]);
    expect(after.surfaces.bytes).toBe(counted(after.surfaces));
    expect(reduceSurfaces(after.surfaces, event(whole, true)).surfaces).toEqual(after.surfaces);
    // A new reader gets all of it.
    expect(main(reduceSurfaces(noSurfaces, event(whole, true)).surfaces).dataModel).toEqual({ a: 1, b: 2, c: 3 });
  });

  test("the last thousand sources and the first hundred problems are remembered", () => {
    const pieces = Array.from({ length: 1500 }, (_, n) => ({
      source: `message ${n}`,
      append: false,
      messages: [set("/a", 1)],
    }));
    const messages = pieces.flatMap((piece) => piece.messages);
    const { surfaces, problems } = reduceSurfaces(noSurfaces, { pieces, messages, problems: [], replay: false });
    expect(surfaces.seen.size).toBe(1000);
    expect(problems).toHaveLength(100);
  });

  test("0.10 creates components and data with the surface", () => {
    const createSurface = {
      surfaceId: "main",
      catalogId,
      surfaceProperties: { agentDisplayName: "Weather" },
      sendDataModel: true,
      components: [text("root", "R")],
      dataModel: { a: 1 },
    };
    const { surfaces } = reduceSurfaces(noSurfaces, [{ version: "v0.10", createSurface }]);
    expect(main(surfaces)).toMatchObject({
      isReady: true,
      sendDataModel: true,
      theme: { agentDisplayName: "Weather" },
      dataModel: { a: 1 },
    });
    expect(surfaces.bytes).toBe(counted(surfaces));
  });
});

describe("surfaces of 0.8", () => {
  const components = [{ id: "top", component: { Text: { text: { path: "/user/name" } } } }];

  test("are created by their first message, and ready when they begin", () => {
    const messages: readonly A2uiServerMessage08[] = [
      { surfaceUpdate: { surfaceId: "main", components } },
      {
        dataModelUpdate: {
          surfaceId: "main",
          path: "user",
          contents: [
            { key: "name", valueString: "Ada" },
            { key: "home", valueMap: [{ key: "floor", valueNumber: 2 }] },
          ],
        },
      },
      { beginRendering: { surfaceId: "main", root: "top", styles: { font: "serif" } } },
    ];
    const waiting = reduceSurfaces(noSurfaces, messages.slice(0, 2));
    expect(main(waiting.surfaces)).toMatchObject({ isReady: false });
    const { surfaces, problems } = reduceSurfaces(waiting.surfaces, messages.slice(2));
    expect(problems).toEqual([]);
    expect(main(surfaces)).toMatchObject({
      isReady: true,
      root: "top",
      theme: { font: "serif" },
      dataModel: { user: { name: "Ada", home: { floor: 2 } } },
    });
    expect(surfaces.bytes).toBe(counted(surfaces));
    const replaced = reduceSurfaces(surfaces, [
      { dataModelUpdate: { surfaceId: "main", path: "/user/name", contents: [{ key: ".", valueString: "Grace" }] } },
      { dataModelUpdate: { surfaceId: "main", path: "/user/home", contents: [{ key: "floor", valueBoolean: true }] } },
      { beginRendering: { surfaceId: "main", root: "top", catalogId: "x" } },
    ]);
    expect(main(replaced.surfaces)).toMatchObject({
      catalogId: "x",
      dataModel: { user: { name: "Grace", home: { floor: true } } },
    });
    expect(main(replaced.surfaces).theme).toBeUndefined();
    expect(replaced.surfaces.bytes).toBe(counted(replaced.surfaces));
  });
});

describe("surfaces are limited in bytes", () => {
  test("a message beyond the limit is left out, and the count of bytes stays exact", () => {
    const value = "x".repeat(900);
    const messages = Array.from({ length: 20 }, (_, n) => set(`/${n}`, value));
    const { surfaces, problems } = reduceSurfaces(noSurfaces, made(...messages), { maxBytes: 10_000 });
    expect(problems.length).toBeGreaterThan(10);
    expect(surfaces.bytes).toBeLessThanOrEqual(10_000);
    expect(surfaces.bytes).toBe(counted(surfaces));
    // Room that is made can be used.
    const after = reduceSurfaces(surfaces, [set("/0"), set("/n", value)], { maxBytes: 10_000 });
    expect(after.problems).toEqual([]);
  });

  test("holes in arrays count too", () => {
    const { problems, surfaces } = reduceSurfaces(noSurfaces, made(set("/a/9999", 1)), { maxBytes: 20_000 });
    expect(problems).toHaveLength(1);
    expect(main(surfaces).dataModel).toEqual({});
  });

  test("many small changes in one part cost one copy", () => {
    const wide = Object.fromEntries(Array.from({ length: 20_000 }, (_, n) => [`k${n}`, n]));
    const start = reduceSurfaces(noSurfaces, made(set("/", wide))).surfaces;
    const before = main(start).dataModel;
    // With a copy for each of them, this would be 260 million members.
    const { surfaces, problems } = reduceSurfaces(
      start,
      Array.from({ length: 13_000 }, (_, n) => set(`/k${n}`, -n)),
    );
    expect(problems).toEqual([]);
    expect((main(surfaces).dataModel as Record<string, number>)["k12999"]).toBe(-12_999);
    expect((before as Record<string, number>)["k12999"]).toBe(12_999);
  });
});

describe("an update only costs its changes", () => {
  const add = (id: string, value = id): A2uiServerMessage => ({
    version,
    updateComponents: { surfaceId: "main", components: [text(id, value)] },
  });

  test("each component is written once, however many there are", () => {
    let writes = 0;
    const original = Map.prototype.set;
    const count = 5000;
    let surfaces = reduceSurfaces(noSurfaces, made()).surfaces;
    const set = vi.spyOn(Map.prototype, "set").mockImplementation(function (this: Map<unknown, unknown>, key, value) {
      writes += 1;
      return Reflect.apply(original, this, [key, value]) as Map<unknown, unknown>;
    });
    onTestFinished(() => set.mockRestore());
    for (let n = 0; n < count; n += 1) surfaces = reduceSurfaces(surfaces, [add(`c${n}`)]).surfaces;
    set.mockRestore();
    expect(main(surfaces).components.size).toBe(count);
    // With a copy for each of them, this would be 12 million.
    expect(writes).toBeLessThan(10 * count);
  });

  test("earlier surfaces stay unchanged, in any order of reading", () => {
    const steps = fc.array(fc.tuple(fc.integer({ min: 0, max: 9 }), fc.integer({ min: 0, max: 99 }), fc.boolean()), {
      maxLength: 80,
    });
    fc.assert(
      fc.property(steps, (changes) => {
        let surfaces = reduceSurfaces(noSurfaces, made()).surfaces;
        const had: (readonly [A2uiSurfaces, ReadonlyMap<string, unknown>])[] = [];
        let expected = new Map<string, unknown>();
        for (const [id, what, goesBack] of changes) {
          had.push([surfaces, expected]);
          // A renderer may also continue with its earlier state.
          if (goesBack)
            [surfaces, expected] = had[what % had.length] as (typeof had)[number] as [A2uiSurfaces, typeof expected];
          expected = new Map(expected).set(`c${id}`, text(`c${id}`, `${what}`));
          surfaces = reduceSurfaces(surfaces, [add(`c${id}`, `${what}`)]).surfaces;
        }
        for (const [before, then] of had) {
          const { components } = main(before);
          expect([...components]).toEqual([...then]);
          expect(components.size).toBe(then.size);
          for (let id = 0; id < 10; id += 1) {
            expect(components.get(`c${id}`)).toEqual(then.get(`c${id}`));
            expect(components.has(`c${id}`)).toBe(then.has(`c${id}`));
          }
        }
      }),
      { numRuns: 50 },
    );
  });

  test("empty surfaces count too, up to a thousand", () => {
    const create = (n: number): A2uiServerMessage => ({ version, createSurface: { surfaceId: `s${n}`, catalogId } });
    const messages = Array.from({ length: 1200 }, (_, n) => create(n));
    const small = reduceSurfaces(noSurfaces, messages, { maxBytes: 100_000 });
    expect(small.surfaces.byId.size).toBeLessThan(100);
    expect(small.surfaces.byId.size).toBeGreaterThan(50);
    expect(small.surfaces.bytes).toBeLessThanOrEqual(100_000);
    const { surfaces, problems } = reduceSurfaces(noSurfaces, messages);
    expect(surfaces.byId.size).toBe(1000);
    expect(problems[0]).toMatchObject({ index: 1000, surfaceId: "s1000", message: expect.stringContaining("1000") });
    // Freed space can be used, and existing surfaces continue.
    const after = reduceSurfaces(surfaces, [
      { version, deleteSurface: { surfaceId: "s0" } },
      create(2000),
      { version, updateDataModel: { surfaceId: "s1", path: "/a", value: 1 } },
    ]);
    expect(after.problems).toEqual([]);
    expect(after.surfaces.byId.get("s1")?.dataModel).toEqual({ a: 1 });
  });
});

/** Paths that meet often. */
const path = fc.array(fc.constantFrom("a", "b", "0", "1", "2"), { maxLength: 4 }).map((steps) => `/${steps.join("/")}`);
const value = fc.option(
  fc.oneof(fc.integer(), fc.string(), fc.boolean(), fc.constant([1, 2]), fc.constant({ a: { b: [] } })),
  { nil: undefined, freq: 4 },
);

function removesNothing(surfaces: A2uiSurfaces, { updateDataModel }: A2uiServerMessage): boolean {
  if (updateDataModel === undefined || updateDataModel.value !== undefined) return false;
  const steps = (updateDataModel.path ?? "/").split("/").filter((step) => step !== "");
  let at: unknown = main(surfaces).dataModel;
  for (const step of steps)
    at = typeof at === "object" && at !== null ? (at as Record<string, unknown>)[step] : undefined;
  return at === undefined;
}

test("the data equals that of the A2UI project's renderer, after any messages", () => {
  fc.assert(
    fc.property(fc.array(fc.tuple(path, value), { maxLength: 20 }), (sets) => {
      const messages = made(...sets.map(([where, what]) => set(where, what as JsonValue | undefined)));
      const theirs = new MessageProcessor([basicCatalog]);
      let surfaces = noSurfaces;
      for (const message of messages) {
        // Their renderer creates missing containers on the way to a removed key. The specification only says "The key at `path` is
        // removed".
        if (removesNothing(surfaces, message)) continue;
        const after = reduceSurfaces(surfaces, [message]);
        let fits = true;
        try {
          theirs.processMessages([structuredClone(message) as A2uiMessage]);
        } catch {
          fits = false;
        }
        // Both reject the same messages.
        expect([message, after.problems.length === 0]).toEqual([message, fits]);
        expect(after.surfaces.bytes).toBe(counted(after.surfaces));
        surfaces = after.surfaces;
      }
      const data = theirs.model.getSurface("main")?.dataModel.get("/") as unknown;
      expect(main(surfaces).dataModel).toEqual(JSON.parse(JSON.stringify(data ?? {})));
    }),
    { numRuns: 200 },
  );
});
