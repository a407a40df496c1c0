import { describe, expect, onTestFinished, test } from "vitest";
import {
  a2ui,
  noSurfaces,
  reduceSurfaces,
  type A2ui,
  type A2uiSurfaces,
  type A2uiVersion,
} from "../../src/a2ui/index.ts";
import type { ReceivedEvent } from "@parley/a2a/internal/client/index";
import { defineAgent } from "@parley/server/internal/agent/index";
import type { Agent } from "@parley/a2a/internal/protocol/index";
import type { JsonObject, Part } from "@parley/a2a/internal/model/index";
import { testAgent, type TestAgent } from "@parley/testing";

/* A2UI over A2A: specification/VERSION/docs/a2ui_extension_specification.md. */

const catalog = "https://example.com/catalogs/weather/v1";
const versions: readonly A2uiVersion[] = ["0.8", "0.9", "0.9.1", "0.10"];

async function serving(agent: Agent): Promise<TestAgent> {
  const under = await testAgent(agent);
  onTestFinished(() => under.close());
  return under;
}

const about = { name: "Weather", description: "Tells the weather", version: "1", skills: [] };

/** A text component that shows the degrees, in the format of this version. */
function root(version: A2uiVersion): object {
  return version === "0.8"
    ? { id: "root", component: { Text: { text: { path: "/now/degrees" } } } }
    : { id: "root", component: "Text", text: { path: "/now/degrees" } };
}

/** Shows the weather, and updates it on request. Answers with text if the client has no surfaces. */
function weather<Version extends A2uiVersion>(ui: A2ui<Version>): Agent {
  return defineAgent({
    ...about,
    defaultInputModes: ["text/plain", "application/json", ui.mediaType],
    extensions: [ui],
    async *onMessage(turn) {
      const offered = turn.ext(ui);
      const surface = offered?.surface("weather");
      if (offered === undefined || surface === undefined) return yield turn.reply("21 degrees");
      if (offered.action === undefined) {
        const init = { components: [root(ui.version)] as never, data: { now: { degrees: 21 } } };
        yield turn.artifact({ artifactId: "weather", parts: surface.create(init), open: true });
        yield turn.append("weather", surface.update({ path: "/now", value: { degrees: 22 } }), { last: true });
        return yield turn.inputRequired("Is that all?");
      }
      const { name, context } = offered.action;
      const answer = name === "refresh" ? surface.update({ path: "/now", value: context }) : surface.delete();
      yield turn.artifact({ artifactId: `answer-${turn.number}`, parts: answer });
      if (name === "refresh") yield turn.inputRequired("Is that all?");
    },
  });
}

interface Shown {
  readonly surfaces: A2uiSurfaces;
  readonly taskId: string | undefined;
  readonly text: string;
  readonly problems: readonly unknown[];
}

/** The state of a renderer after a stream. */
async function shown(stream: AsyncIterable<ReceivedEvent<A2ui>>, ui: A2ui, before = noSurfaces): Promise<Shown> {
  let surfaces = before;
  let taskId: string | undefined;
  let text = "";
  const problems: unknown[] = [];
  for await (const event of stream) {
    taskId ??= event.task?.id ?? event.statusUpdate?.taskId;
    text += event.message?.parts[0]?.text ?? "";
    const read = event.ext(ui);
    if (read === undefined) continue;
    const after = reduceSurfaces(surfaces, read);
    problems.push(...read.problems, ...after.problems);
    surfaces = after.surfaces;
  }
  return { surfaces, taskId, text, problems };
}

describe.each(versions)("A2UI %s", (version) => {
  const ui = a2ui({ version, catalogs: [catalog] });

  test.each(["1.0", "0.3"])("shows a surface, takes actions, and changes it, over A2A %s", async (wire) => {
    const under = await serving(weather(ui));
    const client = await under.connect({ version: wire, extensions: [ui] });
    const first = await shown(client.sendStreamingMessage("How is the weather?"), ui);
    expect(first.problems).toEqual([]);
    expect(first.surfaces.byId.get("weather")).toMatchObject({
      catalogId: catalog,
      isReady: true,
      root: "root",
      dataModel: { now: { degrees: 22 } },
    });
    expect(first.surfaces.byId.get("weather")?.components.get("root")).toEqual(root(version));
    const { taskId = "" } = first;
    const press = (name: string, before: A2uiSurfaces) => {
      const part = ui.action({ name, surfaceId: "weather", sourceComponentId: "again", context: { degrees: 23 } });
      return shown(client.sendStreamingMessage({ message: { taskId, parts: [part] } }), ui, before);
    };
    // The user's typed text stays, although the next stream begins with the whole task.
    const typed = { surfaceId: "weather", path: "/typed", value: "Oslo" };
    const entry = { surfaceId: "weather", path: "/typed", contents: [{ key: "city", valueString: "Oslo" }] };
    const local = version === "0.8" ? { dataModelUpdate: entry } : { version: "v0.9", updateDataModel: typed };
    const before = reduceSurfaces(first.surfaces, [local]).surfaces;
    const second = await press("refresh", before);
    expect(second.problems).toEqual([]);
    expect(second.surfaces.byId.get("weather")?.dataModel).toEqual({
      now: { degrees: 23 },
      typed: version === "0.8" ? { city: "Oslo" } : "Oslo",
    });
    const third = await press("close", second.surfaces);
    expect(third.surfaces).toMatchObject({ byId: new Map(), bytes: 0 });
    // A whole task repeats earlier content, which is neither applied twice nor restored after its removal.
    const again = reduceSurfaces(third.surfaces, (await client.getTask(taskId)).ext(ui) ?? []);
    expect(again).toMatchObject({ problems: [], surfaces: { byId: new Map(), bytes: 0 } });
    // Later readers of the task get the same result.
    const task = await client.getTask(taskId);
    const read = task.ext(ui);
    expect(read?.problems).toEqual([]);
    expect(reduceSurfaces(noSurfaces, read ?? [])).toMatchObject({ problems: [], surfaces: { bytes: 0 } });
    expect(under.problems).toEqual([]);
  });

  test("answers in text without a shared catalog or without activation", async () => {
    const under = await serving(weather(ui));
    const other = a2ui({ version, catalogs: ["https://example.com/catalogs/other"] });
    const replies = [
      await (await under.connect({ extensions: [other] })).sendMessage("How is the weather?"),
      await under.client.sendMessage("How is the weather?"),
    ];
    expect(replies.map(({ message }) => message?.parts)).toEqual([[{ text: "21 degrees" }], [{ text: "21 degrees" }]]);
  });
});

describe("capabilities of a client", () => {
  /** Repeats its input. */
  function mirror(ui: A2ui): Agent {
    return defineAgent({
      ...about,
      extensions: [ui],
      onMessage(turn) {
        const { catalogs, capabilities } = turn.ext(ui) ?? {};
        const offered = turn.ext(ui)?.dataModel("form") ?? null;
        return turn.reply({ data: JSON.parse(JSON.stringify({ catalogs, capabilities, offered })) as JsonObject });
      },
    });
  }

  const inline = { catalogId: "https://example.com/inline", components: {} };
  const client = { version: "0.9", catalogs: ["https://example.com/b", catalog], inlineCatalogs: [inline] } as const;

  test("inline catalogs go only to agents that accept them", async () => {
    const told = async (acceptsInlineCatalogs: boolean) => {
      const under = await serving(mirror(a2ui({ version: "0.9", catalogs: [catalog], acceptsInlineCatalogs })));
      const { message } = await (await under.connect({ extensions: [a2ui(client)] })).sendMessage("Hi");
      return message?.parts[0]?.data;
    };
    const supportedCatalogIds = client.catalogs;
    expect(await told(false)).toEqual({
      catalogs: [{ catalogId: catalog }],
      capabilities: { supportedCatalogIds, inlineCatalogs: [] },
      offered: null,
    });
    expect(await told(true)).toEqual({
      catalogs: [{ catalogId: catalog }, { catalogId: inline.catalogId, inline }],
      capabilities: { supportedCatalogIds, inlineCatalogs: [inline] },
      offered: null,
    });
  });

  test("only data of surfaces with sendDataModel is sent", async () => {
    const version = "v0.9";
    const create = (surfaceId: string, sendDataModel: boolean) => [
      { version, createSurface: { surfaceId, catalogId: catalog, sendDataModel } },
      { version, updateDataModel: { surfaceId, value: { name: surfaceId } } },
    ];
    const { surfaces } = reduceSurfaces(noSurfaces, [...create("form", true), ...create("secret", false)]);
    const under = await serving(mirror(a2ui({ version: "0.9", catalogs: [catalog] })));
    const sent: string[] = [];
    const own = a2ui({ ...client, surfaces: () => surfaces });
    const connected = await under.connect({
      extensions: [own],
      interceptors: [
        (next) => ({
          ...next,
          call: (operation, request, context) => {
            sent.push(JSON.stringify(request));
            return next.call(operation, request, context);
          },
        }),
      ],
    });
    const { message } = await connected.sendMessage("Hi");
    expect(message?.parts[0]?.data).toMatchObject({ offered: { name: "form" } });
    expect(sent.join()).not.toContain("secret");
  });

  test("invalid capabilities are absent", async () => {
    const under = await serving(mirror(a2ui({ version: "0.9" })));
    const connected = await under.connect({ extensions: [a2ui({ version: "0.9" }).uri] });
    const { message } = await connected.sendMessage({
      message: {
        parts: [{ text: "Hi" }],
        metadata: { a2uiClientCapabilities: { "v0.9": { supportedCatalogIds: 5 } } },
      },
    });
    expect(message?.parts[0]?.data).toMatchObject({ catalogs: [{}] });
  });
});

describe("invalid content", () => {
  const ui = a2ui({ version: "0.9", catalogs: [catalog], maxBytes: 5000 });
  const good = { version: "v0.9", deleteSurface: { surfaceId: "a" } };

  /** Calls the agent with untrusted input. */
  async function received(data: unknown): Promise<{ readonly said: unknown; readonly problems: readonly string[] }> {
    const agent = defineAgent({
      ...about,
      defaultInputModes: ["text/plain", "application/json"],
      extensions: [ui],
      onMessage(turn) {
        const { actions, problems } = turn.ext(ui) ?? {};
        const names = actions?.map(({ name }) => name) ?? null;
        return turn.reply({ data: { names, paths: problems?.map(({ path }) => path) ?? null } });
      },
    });
    const under = await serving(agent);
    const client = await under.connect({ extensions: [ui.uri] });
    const part = { data, metadata: { mimeType: "application/a2ui+json" } } as Part;
    const { message } = await client.sendMessage({ message: { parts: [part] } });
    return { said: message?.parts[0]?.data, problems: under.problems };
  }

  const action = { surfaceId: "a", sourceComponentId: "b", timestamp: "2026-01-01T00:00:00Z", context: {} };

  test("in a client message is dropped and logged, and the rest of the list applies", async () => {
    const { said, problems } = await received([
      { version: "v0.9", action: { ...action, name: "first" } },
      { version: "v0.9", action: { ...action, name: 5 } },
      good,
      { version: "v0.9", action: { ...action, name: "second" } },
    ]);
    expect(said).toEqual({ names: ["first", "second"], paths: ["/action/name", ""] });
    expect(problems).toHaveLength(2);
    expect(problems[0]).toContain("Dropped an invalid A2UI message from a client");
  });

  test.each<[string, unknown]>([
    ["that is not a list", { version: "v0.9", action: { ...action, name: "first" } }],
    ["that is too large", [{ version: "v0.9", action: { ...action, name: "x".repeat(6000) } }]],
  ])("a part %s is not read", async (_, data) => {
    expect((await received(data)).said).toEqual({ names: [], paths: [""] });
  });

  test("in a part made by the agent is dropped before it is stored, and logged", async () => {
    const made = [good, { version: "v0.9", createSurface: {} }, good];
    const agent = defineAgent({
      ...about,
      extensions: [ui],
      async *onMessage(turn) {
        expect(turn.ext(ui)?.check(made)).toMatchObject([{ index: 1, path: "/createSurface/surfaceId" }]);
        expect(() => turn.ext(ui)?.parts(made as never)).toThrow(/^Message 1 is not a message of A2UI 0\.9/);
        yield turn.artifact({ parts: [{ data: made, mediaType: ui.mediaType }, { text: "As text" }] });
        yield turn.completed([{ data: [{}], mediaType: ui.mediaType }]);
      },
    });
    const under = await serving(agent);
    const { task } = await (await under.connect({ extensions: [ui] })).sendMessage("Hi");
    expect(task?.status.state).toBe("TASK_STATE_COMPLETED");
    expect(task?.artifacts?.[0]?.parts).toEqual([{ data: [good, good], mediaType: ui.mediaType }, { text: "As text" }]);
    expect(task?.status.message?.parts[0]?.data).toEqual([]);
    expect(under.problems.join()).toContain("Dropped an invalid A2UI message from the agent");
  });

  test("in an answer of an agent is a problem, never an error", async () => {
    // This server does not implement A2UI: it sends hostile content.
    const bad = [good, { version: "v0.9", updateComponents: { surfaceId: "main", components: [{}] } }, 5];
    const agent = defineAgent({
      ...about,
      onMessage: (turn) =>
        turn.reply([
          { data: bad, mediaType: ui.mediaType },
          { data: ["x".repeat(6000)], mediaType: ui.mediaType },
        ]),
    });
    const under = await testAgent(agent, { extensions: [{ uri: ui.uri }] });
    onTestFinished(() => under.close());
    const client = await under.connect({ extensions: [ui] });
    const answer = await client.sendMessage("Hi");
    const read = answer.ext(ui);
    expect(read?.messages).toEqual([good]);
    expect(read?.problems).toMatchObject([
      { index: 1, path: "/updateComponents/components/0/id", surfaceId: "main" },
      { index: 2, path: "" },
      { index: 0, message: "must not be larger than 5000 bytes" },
    ]);
  });
});

describe("a surface", () => {
  test("is written in the client's version", async () => {
    const [old, young] = [
      a2ui({ version: "0.8", catalogs: [catalog] }),
      a2ui({ version: "0.10", catalogs: [catalog] }),
    ];
    const agent = defineAgent({
      ...about,
      defaultInputModes: ["text/plain", "application/json"],
      extensions: [old, young],
      onMessage(turn) {
        const [eight, ten] = [turn.ext(old), turn.ext(young)];
        const read = [eight, ten].map((one) => one?.action?.name ?? null);
        const surface = ten?.surface("a") ?? eight?.surface("a");
        return turn.reply([{ data: read }, ...(surface?.delete() ?? [])]);
      },
    });
    const under = await serving(agent);
    const ask = async (extensions: readonly A2ui[], parts: readonly Part[]) => {
      const client = await under.connect({ extensions: extensions.map(({ uri }) => uri) });
      const capabilities = { supportedCatalogIds: [catalog], "v0.10": { supportedCatalogIds: [catalog] } };
      const bare = parts.map(({ mediaType: _, ...rest }) => rest as Part);
      const { message } = await client.sendMessage({
        message: { parts: [{ text: "Hi" }, ...bare], metadata: { a2uiClientCapabilities: capabilities } },
      });
      return message?.parts.map(({ data }) => data);
    };
    const press = (ui: A2ui) => ui.action({ name: ui.version, surfaceId: "a", sourceComponentId: "b" });
    expect(await ask([old], [press(old), press(young)])).toEqual([
      ["0.8", null],
      { deleteSurface: { surfaceId: "a" } },
    ]);
    expect(await ask([old, young], [press(old), press(young)])).toEqual([
      ["0.8", "0.10"],
      [{ version: "v0.10", deleteSurface: { surfaceId: "a" } }],
    ]);
  });

  test("streams its updates as one artifact, repeated by a resumed run", async () => {
    const ui = a2ui({ version: "0.9", catalogs: [catalog] });
    const agent = defineAgent({
      ...about,
      extensions: [ui],
      resumable: true,
      async *onMessage(turn) {
        const surface = turn.ext(ui)?.surface("progress");
        const updates = Array.from({ length: 6 }, (_, at) => ({ path: "/percent", value: at * 20 }));
        const init = { components: [{ id: "root", component: "Text", text: { path: "/percent" } }], theme: {} };
        if (surface !== undefined) yield* surface.stream(init, updates, { name: "progress" });
      },
    });
    const under = await serving(agent);
    const client = await under.connect({ extensions: [ui] });
    let surfaces = noSurfaces;
    const percents: unknown[] = [];
    for await (const event of client.sendStreamingMessage("Go")) {
      const read = event.ext(ui);
      const after = reduceSurfaces(surfaces, read ?? []);
      expect(after.problems).toEqual([]);
      surfaces = after.surfaces;
      if (event.artifactUpdate === undefined) continue;
      const { dataModel } = surfaces.byId.get("progress") ?? { dataModel: {} };
      percents.push((dataModel as JsonObject)["percent"]);
      if (percents.length !== 3) continue;
      await under.crash();
      await under.restart();
    }
    expect(percents).toEqual([undefined, 0, 20, 40, 60, 80, 100]);
    const { tasks } = await client.listTasks({ includeArtifacts: true });
    expect(tasks[0]?.artifacts).toMatchObject([{ artifactId: "a2ui-1-progress", name: "progress" }]);
    expect(tasks[0]?.artifacts?.[0]?.parts).toHaveLength(7);
  });

  test("has a shared catalog, or another one chosen by the agent", async () => {
    const other = "https://example.com/catalogs/other";
    const ui = a2ui({ version: "0.9", catalogs: [catalog, other] });
    const agent = defineAgent({
      ...about,
      extensions: [ui],
      onMessage(turn) {
        const offered = turn.ext(ui);
        expect(() => offered?.surface("a", { catalogId: "https://example.com/third" })).toThrow(TypeError);
        const ids = [offered?.surface("a"), offered?.surface("a", { catalogId: other })];
        return turn.reply(ids.map((surface) => surface?.catalogId ?? "none").join());
      },
    });
    const under = await serving(agent);
    const { message } = await (await under.connect({ extensions: [ui] })).sendMessage("Hi");
    expect(message?.parts[0]?.text).toBe(`${catalog},${other}`);
  });

  test("in 0.8 has only objects and arrays, and no null", async () => {
    const ui = a2ui({ version: "0.8", catalogs: [catalog] });
    const agent = defineAgent({
      ...about,
      extensions: [ui],
      onMessage(turn) {
        const surface = turn.ext(ui)?.surface("a");
        expect(() => surface?.update({ path: "/name", value: "Ada" })).toThrow(/sets objects and arrays/);
        expect(() => surface?.update({ path: "/", value: { name: null } })).toThrow(/has no null: name/);
        return turn.reply(surface?.update({ path: "/list", value: ["a", { b: true }] }) ?? "none");
      },
    });
    const under = await serving(agent);
    const { message } = await (await under.connect({ extensions: [ui] })).sendMessage("Hi");
    expect(message?.parts[0]?.data).toEqual({
      dataModelUpdate: {
        surfaceId: "a",
        path: "/list",
        contents: [
          { key: "0", valueString: "a" },
          { key: "1", valueMap: [{ key: "b", valueBoolean: true }] },
        ],
      },
    });
  });

  test("answers an action in 0.10", async () => {
    const ui = a2ui({ version: "0.10", catalogs: [catalog] });
    const agent = defineAgent({
      ...about,
      defaultInputModes: ["text/plain", ui.mediaType],
      extensions: [ui],
      onMessage(turn) {
        const offered = turn.ext(ui);
        if (offered?.action === undefined) return turn.reply("none");
        return turn.reply(offered.respond(offered.action, { value: { saved: true } }));
      },
    });
    const client = await (await serving(agent)).connect({ extensions: [ui] });
    const waits = { name: "save", surfaceId: "a", sourceComponentId: "b", wantResponse: true, actionId: "7" };
    const answer = await client.sendMessage({ message: { parts: [ui.action(waits)] } });
    expect(answer.ext(ui)?.messages).toEqual([
      { version: "v0.10", actionId: "7", actionResponse: { value: { saved: true } } },
    ]);
  });
});
