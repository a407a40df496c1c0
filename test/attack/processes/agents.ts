import { createHash } from "node:crypto";
import { connect, defineAgent, nodeDialer, text, type Agent } from "@parley/node";
import { guardedFetch } from "@parley/a2a/protocol";

/* The agents of the servers. The first part of a message is the command. */

const described = { description: "Does what it is told", version: "1.0.0", skills: [], defaultInputModes: ["*/*"] };

let speak = (): void => {};
const spoken = new Promise<void>((resolve) => (speak = resolve));

function actor(): Agent {
  return defineAgent({
    ...described,
    name: "Actor",
    async *onMessage(turn) {
      // The other parts of the message may be large.
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

/** Creates an agent that kills its process immediately, even when the agent is resumed. */
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

/** Creates an agent that resumes from its checkpoint each time, until the test tells it to end. */
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

/** Creates an agent with a short idle timeout. */
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

/** Creates the agent of the examples, with shorter timeouts, and allowed to fetch from this machine. */
async function analyst(): Promise<Agent> {
  const { createDataAnalyst } = await import("../../../examples/data-analyst/src/agent.ts");
  return createDataAnalyst({ fetch: guardedFetch({ allowPrivate: true, timeout: 2_000 }, nodeDialer()) });
}

/** Creates an agent that sends a file of the requested size in MiB. */
function files(): Agent {
  return defineAgent({
    ...described,
    name: "Files",
    defaultOutputModes: ["*/*"],
    async *onMessage(turn) {
      yield* turn.file(mebibytes(Number(turn.text)), { name: "large.bin" });
    },
  });
}

/** Creates an agent that reports the digests of the files that it receives, and sends the first file back. */
function digests(): Agent {
  return defineAgent({
    ...described,
    name: "Digests",
    defaultOutputModes: ["*/*"],
    async *onMessage(turn) {
      const [first] = turn.files();
      for (const file of turn.files()) {
        const hash = createHash("sha256");
        for await (const piece of file.stream()) hash.update(piece);
        yield turn.artifact({ name: "digest", parts: [text(`${file.name} ${file.size} ${hash.digest("hex")}`)] });
      }
      if (first !== undefined && turn.text === "back") yield* turn.file(first.stream(), { name: "back.bin" });
    },
  });
}

/** Creates an agent that makes the agent at the given URL send a file. */
function passing(): Agent {
  return defineAgent({
    ...described,
    name: "Passing",
    defaultOutputModes: ["*/*"],
    async *onMessage(turn) {
      const [url = "", mebibytes = ""] = turn.text.split(" ");
      yield* turn.delegate(await connect(url), mebibytes);
    },
  });
}

/** Yields bytes that differ from one MiB to the next. */
export async function* mebibytes(count: number): AsyncGenerator<Uint8Array> {
  for (let at = 0; at < count; at += 1) yield new Uint8Array(1 << 20).fill(at);
}

/** Lets the waiting agents start to stream. */
export { speak };
export const agents = { actor, poisoned, patient, brief, digests, files, passing, analyst };
export type AgentName = keyof typeof agents;
