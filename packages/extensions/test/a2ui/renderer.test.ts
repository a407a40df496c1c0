import { A2uiMessageProcessor } from "@a2ui/web_core/v0_8";
import { MessageProcessor, type A2uiClientAction, type A2uiMessage } from "@a2ui/web_core/v0_9";
import { basicCatalog } from "@a2ui/web_core/v0_9/basic_catalog";
import { expect, onTestFinished, test } from "vitest";
import { a2ui, noSurfaces, reduceSurfaces, type A2uiVersion } from "../../src/a2ui/index.ts";
import { defineAgent } from "@parley/server/internal/agent/index";
import type { JsonObject } from "@parley/a2a/internal/model/index";
import { testAgent, type TestAgent } from "@parley/testing";

/*
 * Interop with `@a2ui/web_core`, the core of the renderers of the A2UI project: its processors read what our agent sends, and our agent
 * reads their messages.
 */

const components = [
  { id: "root", component: "Column", children: ["name", "send", "hello"] },
  { id: "name", component: "TextField", label: "Name", value: { path: "/form/name" } },
  {
    id: "send",
    component: "Button",
    child: "label",
    action: { event: { name: "greet", context: { name: { path: "/form/name" } } } },
  },
  { id: "label", component: "Text", text: "Send" },
  { id: "hello", component: "Text", text: { path: "/hello" } },
];

async function serving(version: "0.9" | "0.9.1"): Promise<TestAgent> {
  const ui = a2ui({ version });
  const agent = defineAgent({
    name: "Greeter",
    description: "Greets",
    version: "1",
    skills: [],
    defaultInputModes: ["text/plain", "application/json", ui.mediaType],
    extensions: [ui],
    async *onMessage(turn) {
      const offered = turn.ext(ui);
      const surface = offered?.surface("form");
      if (surface === undefined) return yield turn.reply("Hello");
      const { action } = offered ?? {};
      if (action === undefined) {
        const data = { form: { name: "" }, hello: "" };
        const theme = { primaryColor: "#00BFFF" };
        yield turn.artifact({ parts: surface.create({ components, data, theme, sendDataModel: true }) });
      } else {
        const { form } = (offered?.dataModel("form") ?? {}) as { readonly form: { readonly name: string } };
        const hello = `Hello ${form.name}, or ${JSON.stringify(action.context["name"])}`;
        yield turn.artifact({ parts: surface.update({ path: "/hello", value: hello }) });
      }
      yield turn.inputRequired("Your name?");
    },
  });
  const under = await testAgent(agent);
  onTestFinished(() => under.close());
  return under;
}

test.each(["0.9", "0.9.1"] as const)(
  "the renderer shows our agent's surfaces in %s, and its actions come back",
  async (version) => {
    const under = await serving(version);
    const ui = a2ui({ version });
    const client = await under.connect({ extensions: [ui.uri] });
    const reading = await under.connect({ extensions: [ui] });
    const pressed: A2uiClientAction[] = [];
    const renderer = new MessageProcessor([basicCatalog], (action) => void pressed.push(action), {
      version: `v${version}`,
    });
    let surfaces = noSurfaces;

    /** Sends with the renderer's own statement of its catalogs and its data. */
    async function send(message: object): Promise<string> {
      const data = renderer.getClientDataModel();
      const metadata = JSON.parse(
        JSON.stringify({
          a2uiClientCapabilities: renderer.getClientCapabilities(),
          ...(data && { a2uiClientDataModel: data }),
        }),
      ) as JsonObject;
      const { task } = await client.sendMessage({ message: { parts: [{ text: "Hi" }], ...message, metadata } });
      const id = task?.id ?? "";
      const { artifacts } = await reading.getTask(id);
      // The last artifact is the new part.
      const [last] = artifacts?.slice(-1) ?? [];
      const messages = (last?.parts ?? []).flatMap((part) => part.data as unknown as A2uiMessage[]);
      renderer.processMessages(structuredClone(messages));
      const after = reduceSurfaces(surfaces, messages);
      expect(after.problems).toEqual([]);
      surfaces = after.surfaces;
      return id;
    }

    const taskId = await send({});
    const form = renderer.model.getSurface("form");
    expect(form?.theme).toEqual({ primaryColor: "#00BFFF" });
    expect(Array.from(form?.componentsModel.entries ?? [], ([id, { type }]) => [id, type])).toEqual(
      components.map(({ id, component }) => [id, component]),
    );
    // The user types, and presses the button.
    form?.dataModel.set("/form/name", "Ada");
    await form?.dispatchAction({ event: { name: "greet", context: { name: "Ada" } } }, "send");
    expect(pressed).toMatchObject([{ name: "greet", surfaceId: "form", sourceComponentId: "send" }]);
    await send({ taskId, parts: ui.clientParts([{ version: `v${version}`, action: pressed[0] as never }]) });
    expect(form?.dataModel.get("/hello")).toBe('Hello Ada, or "Ada"');
    // Our reducer has the same state, except for the text that was typed into the renderer.
    expect(surfaces.byId.get("form")?.dataModel).toEqual({ form: { name: "" }, hello: 'Hello Ada, or "Ada"' });
    expect(under.problems).toEqual([]);
  },
);

test("the renderer of 0.8 shows our agent's surfaces", async () => {
  const version: A2uiVersion = "0.8";
  const ui = a2ui({ version });
  const top = { id: "top", component: { Text: { text: { path: "/user/name" }, usageHint: "h1" } } };
  const agent = defineAgent({
    name: "Greeter",
    description: "Greets",
    version: "1",
    skills: [],
    extensions: [ui],
    async *onMessage(turn) {
      const surface = turn.ext(ui)?.surface("main");
      if (surface === undefined) return;
      const data = { user: { name: "Ada", tags: ["a", "b"] } };
      const theme = { primaryColor: "#00BFFF" };
      yield turn.artifact({
        artifactId: "ui",
        parts: surface.create({ components: [top], data, root: "top", theme }),
        open: true,
      });
      yield turn.append("ui", surface.update({ path: "/user", value: { name: "Grace" } }), { last: true });
    },
  });
  const under = await testAgent(agent);
  onTestFinished(() => under.close());
  const client = await under.connect({ extensions: [ui] });
  const answer = await client.sendMessage("Hi");
  const messages = answer.ext(ui)?.messages ?? [];
  expect(messages).toHaveLength(4);
  const renderer = new A2uiMessageProcessor();
  renderer.processMessages(structuredClone(messages) as never);
  const surface = renderer.getSurfaces().get("main");
  expect(surface?.componentTree).toMatchObject({ id: "top", type: "Text" });
  expect(surface?.styles).toEqual({ primaryColor: "#00BFFF" });
  const { user } = Object.fromEntries(surface?.dataModel ?? []) as Record<string, unknown>;
  expect(Object.fromEntries(user as Map<string, unknown>)).toEqual({ name: "Grace" });
  const ours = reduceSurfaces(noSurfaces, messages).surfaces.byId.get("main");
  expect(ours).toMatchObject({ isReady: true, root: "top", dataModel: { user: { name: "Grace" } } });
});
