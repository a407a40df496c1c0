import { defineAgent, type Agent } from "@parley/server";
import { a2ui, noSurfaces, reduceSurfaces, type A2ui, type A2uiVersion } from "@parley/extensions/a2ui";
import { extensionContract } from "@parley/testing";
import { describe, expect, test } from "vitest";
import { everyBinding } from "./extension-bindings.ts";

/** Tests A2UI over real sockets: JSON-RPC, REST and gRPC, in A2A 1.0 and 0.3. */

/** Creates an agent that shows a surface, or replies with text. */
function agentWith(ui: A2ui): Agent {
  const root = ui.version === "0.8" ? { id: "root", component: { Text: {} } } : { id: "root", component: "Text" };
  return defineAgent({
    name: "Surfaces",
    description: "Shows surfaces",
    version: "1.0.0",
    skills: [],
    defaultInputModes: ["text/plain", "application/json", ui.mediaType],
    extensions: [ui],
    async *onMessage(turn) {
      const surface = turn.ext(ui)?.surface("main");
      const shown = surface?.create({
        components: [root] as never,
        data: { action: turn.ext(ui)?.action?.name ?? "" },
      });
      yield turn.artifact({ artifactId: "main", parts: shown ?? [{ text: turn.text }] });
    },
  });
}

describe.each<A2uiVersion>(["0.8", "0.9", "0.9.1", "0.10"])("A2UI %s keeps the contract of extensions", (version) => {
  const ui = a2ui({ version });
  extensionContract(
    { describe, it: test, expect },
    {
      extension: ui,
      over: everyBinding(),
      agent: () => agentWith(ui),
      message: (active) => ({
        parts: [
          { text: "Hi" },
          ...(active ? [ui.action({ name: "press", surfaceId: "main", sourceComponentId: "button" })] : []),
        ],
      }),
      check({ answer, expect: that }) {
        const read = answer.task?.ext(ui);
        that(read?.problems).toEqual([]);
        const { surfaces } = reduceSurfaces(noSurfaces, read?.messages ?? []);
        that(surfaces.byId.get("main")?.dataModel).toEqual({ action: "press" });
        that(surfaces.byId.get("main")?.isReady).toEqual(true);
      },
    },
  );
});
