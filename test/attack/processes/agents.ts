import { defineAgent, text, type Agent } from "@parley/a2a";
import { guardedFetch } from "@parley/a2a/net";
import { nodeDialer } from "@parley/node";

/** The agents of the servers. What the first part of a message says is what happens. */

const described = { description: "Does what it is told", version: "1.0.0", skills: [], defaultInputModes: ["*/*"] };

let speak = (): void => {};
const spoken = new Promise<void>((resolve) => (speak = resolve));

function actor(): Agent {
  return defineAgent({
    ...described,
    name: "Actor",
    async *onMessage(turn) {
      // The other parts are as large as an attacker likes.
      const [what, ...numbers] = (turn.message.parts[0]?.text ?? "").split(" ");
      const [count = 0, bytes = 0] = numbers.map(Number);
      if (what === "hello") return turn.reply("Hello");
      yield turn.working();
      if (what === "hold") await new Promise((resolve) => turn.signal.addEventListener("abort", resolve));
      if (what === "artifacts" || what === "unfinished") {
        for (let at = 0; at < count; at++) yield turn.artifact({ parts: [text("a".repeat(bytes))] });
      }
      if (what === "unfinished") await new Promise((resolve) => turn.signal.addEventListener("abort", resolve));
      if (what === "stream") {
        yield { kind: "artifact", artifact: { artifactId: "stream", parts: [text("begun")] } };
        await spoken;
        for (let at = 0; at < count; at++) yield turn.append("stream", [text("a".repeat(bytes))]);
      }
      return undefined;
    },
  });
}

/** Ends its process with the first thing that it does, and whoever takes it up again does the same. */
function poisoned(): Agent {
  return defineAgent({
    ...described,
    name: "Poisoned",
    resumable: true,
    mayReplyDirectly: false,
    async *onMessage(turn) {
      yield turn.working();
      await turn.flush();
      process.kill(process.pid, "SIGKILL");
    },
  });
}

/** Goes on where it was, each time that it is started again, until it is told to end. */
function patient(): Agent {
  return defineAgent({
    ...described,
    name: "Patient",
    resumable: true,
    mayReplyDirectly: false,
    async *onMessage(turn) {
      yield turn.working(`attempt ${turn.attempt}`, { keep: true });
      if (turn.text === "wait" && turn.attempt === 1) {
        await new Promise((resolve) => turn.signal.addEventListener("abort", resolve));
      }
    },
  });
}

/** May not be silent for long. */
function brief(): Agent {
  return defineAgent({
    ...described,
    name: "Brief",
    idleTimeout: 3_000,
    async *onMessage(turn) {
      yield turn.working();
      await new Promise((resolve) => turn.signal.addEventListener("abort", resolve));
    },
  });
}

/** The one of the examples, which may fetch from this machine here, and has less patience. */
async function analyst(): Promise<Agent> {
  const { createDataAnalyst } = await import("../../../examples/data-analyst/src/agent.ts");
  return createDataAnalyst({ fetch: guardedFetch({ allowPrivate: true, timeout: 2_000 }, nodeDialer()) });
}

/** Lets those who have something to stream begin. */
export { speak };
export const agents = { actor, poisoned, patient, brief, analyst };
export type AgentName = keyof typeof agents;
