import { connect, defineAgent, serve, silentLogger } from "@parley/node";
import { a2ui, noSurfaces, reduceSurfaces, type A2uiSurfaces } from "@parley/extensions/a2ui";
import type { JsonObject, Part } from "@parley/a2a/model";
import { describe, expect, it, onTestFinished } from "vitest";

/*
 * Attacks on both sides of A2UI ("What is checked" of its page): names of prototype members, oversized or deeply nested surfaces, invalid actions.
 */

const clean = (): void => {
  for (const name of ["polluted", "routes", "cost", "dataModel"]) expect(({} as JsonObject)[name]).toBeUndefined();
};

describe("a client that shows surfaces", () => {
  const ui = a2ui({ version: "0.9" });
  const partOf = (messages: unknown): Part => ({ data: messages as never, mediaType: ui.mediaType });

  /** Sends an agent's output over the wire, and folds it in a client. */
  async function shown(json: readonly string[]): Promise<A2uiSurfaces> {
    const agent = defineAgent({
      name: "Evil",
      description: "Shows surfaces",
      version: "1.0.0",
      skills: [],
      extensions: [ui],
      async *onMessage(turn) {
        for (const each of json) yield turn.artifact({ parts: [partOf(JSON.parse(each))] });
      },
    });
    const server = await serve(agent, { port: 0, signals: false, logger: silentLogger });
    onTestFinished(() => server.close({ grace: 0 }));
    const client = await connect(server.url, { extensions: [ui] });
    let surfaces = noSurfaces;
    for await (const event of client.sendStreamingMessage("go")) {
      const read = event.ext(ui);
      if (read !== undefined) surfaces = reduceSurfaces(surfaces, read, { maxBytes: 4 << 20 }).surfaces;
    }
    return surfaces;
  }

  const message = (kind: string, content: string): string => `{"version":"v0.9","${kind}":${content}}`;
  const create = (id: string): string => message("createSurface", `{"surfaceId":"${id}","catalogId":"c"}`);
  const set = (path: string, value: string): string =>
    message("updateDataModel", `{"surfaceId":"s","path":"${path}","value":${value}}`);

  it("is not polluted by paths, ids and values with names of prototypes", async () => {
    const steps = [
      "/__proto__/polluted",
      "/a/__proto__/polluted",
      "/constructor/prototype/polluted",
      "__proto__",
      "/a~1__proto__",
    ];
    const surfaces = await shown([
      `[${[
        create("s"),
        create("__proto__"),
        ...steps.map((step) => set(step, "1")),
        set("/", '{"__proto__":{"polluted":1},"constructor":{"prototype":{"polluted":1}}}'),
        set("/b", '{"__proto__":{"polluted":1}}'),
        set("/b/c", "1"),
        message(
          "updateComponents",
          `{"surfaceId":"s","components":[{"id":"__proto__","component":"Text","polluted":1}]}`,
        ),
      ].join()}]`,
    ]);
    clean();
    expect(Object.keys(surfaces.byId.get("s") ?? {})).not.toContain("polluted");
    expect((surfaces.byId.get("s")?.dataModel as JsonObject | undefined)?.["polluted"]).toBeUndefined();
    expect([...(surfaces.byId.get("s")?.components.keys() ?? [])]).toEqual(["__proto__"]);
  });

  it("stays within its bounds, whatever size and depth the messages have", async () => {
    const deep = "[".repeat(60) + "]".repeat(60);
    const surfaces = await shown([
      `[${create("s")},${set("/", `[${"1,".repeat(200_000)}1]`)}]`,
      // Each update names the large value. A naive client would copy or count that value again.
      `[${Array.from({ length: 8_000 }, (_, at) => set(`/${at % 10_000}`, "2")).join()}]`,
      `[${Array.from({ length: 8_000 }, () => set("/999999999", "2")).join()}]`,
      `[${Array.from({ length: 5_000 }, (_, at) => create(`x${at}`)).join()}]`,
      `[${set(`/${"a/".repeat(100)}`, "1")},${set("/0", deep)}]`,
      `[${set("/0", "[".repeat(3000) + "]".repeat(3000))}]`,
      `[${set("/1", JSON.stringify("x".repeat(900_000)))},${set("/2", JSON.stringify("x".repeat(50_000)))}]`,
    ]);
    expect(surfaces.byId.size).toBeLessThanOrEqual(1000);
    expect(surfaces.bytes).toBeLessThanOrEqual(4 << 20);
    expect(JSON.stringify([...surfaces.byId.values()].map(({ dataModel }) => dataModel)).length).toBeLessThan(4 << 20);
  });

  it("passes no action to an agent that the client did not send as one", async () => {
    const seen: unknown[] = [];
    const agent = defineAgent({
      name: "Form",
      description: "Reads actions",
      version: "1.0.0",
      skills: [],
      defaultInputModes: ["text/plain", "application/json", ui.mediaType],
      extensions: [ui],
      onMessage(turn) {
        const { actions = [], dataModel } = turn.ext(ui) ?? {};
        seen.push([actions.map(({ name }) => name), dataModel?.("__proto__"), dataModel?.("toString")]);
        return turn.reply("ok");
      },
    });
    const server = await serve(agent, { port: 0, signals: false, logger: silentLogger });
    onTestFinished(() => server.close({ grace: 0 }));
    const client = await connect(server.url, { extensions: [ui] });
    const action = {
      name: "pay",
      surfaceId: "s",
      sourceComponentId: "b",
      timestamp: "2026-01-31T12:00:00Z",
      context: {},
    };
    for (const data of [
      [{ version: "v0.9", action: { ...action, surfaceId: 1 } }],
      [{ version: "v0.9", action, error: {} }],
      [{ version: "v9", action }],
      [[{ version: "v0.9", action }]],
      JSON.parse('[{"version":"v0.9","__proto__":{"action":{"name":"pay"}}}]') as unknown,
    ]) {
      await client.sendMessage({
        parts: [partOf(data)],
        metadata: { a2uiClientDataModel: { version: "v0.9", surfaces: {} } },
      });
    }
    await client.sendMessage({ parts: [partOf([{ version: "v0.9", action }])] });
    expect(seen).toEqual([
      ...Array.from({ length: 5 }, () => [[], undefined, undefined]),
      [["pay"], undefined, undefined],
    ]);
  });
});
