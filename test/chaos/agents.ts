import { data, defineAgent, text, type Agent, type AgentYield, type Part, type Turn } from "@parley/server";
import { artifactOf, chunkOf, type Order } from "./orders.ts";

/* The agents of the cluster. Their events depend only on their orders, and on the responses of the service that has side effects. */

/** Calls the service that has side effects. Returns the number of the call. */
export type CallService = (call: {
  readonly taskId: string;
  readonly key: string;
  readonly attempt: number;
  readonly uncertain: boolean;
  readonly signal: AbortSignal;
}) => Promise<number>;

/** Creates an agent that tells stories in chunks, with side effects in between, and asks or waits at the end. */
export function storyteller(resumable: boolean, call: CallService): Agent {
  return defineAgent({
    name: resumable ? "Resumable" : "Plain",
    description: "Tells a story in chunks",
    version: "1.0.0",
    skills: [],
    resumable,
    async *onMessage(turn) {
      const order = JSON.parse(turn.text) as Order;
      if (order.what === "note")
        return yield turn.artifact({ artifactId: artifactOf(order), parts: [text(chunkOf(order, 1))] });
      yield* tell(turn, order, call);
      if (order.what === "ask") return yield turn.inputRequired("And then?");
      if (order.what === "wait") {
        yield* turn.sleep(300);
        yield turn.working("Waiting for a word");
        const word = yield* turn.waitFor("word", { timeout: 3_600_000 });
        return yield turn.completed(`The word is ${JSON.stringify(word)}`);
      }
      return undefined;
    },
  });
}

async function* tell(turn: Turn, order: Order, call: CallService): AsyncGenerator<AgentYield, void, void> {
  const artifactId = artifactOf(order);
  let number = (turn.checkpoint as number | undefined) ?? 0;
  if (number === 0) yield turn.working(`Telling ${order.name}`);
  while (number < order.chunks) {
    number += 1;
    await pause(order.pause, turn.signal);
    const parts: Part[] = [text(chunkOf(order, number))];
    if (order.steps.includes(number)) {
      const done = await turn.step(`effect ${order.name} ${number}`, async ({ key, uncertain, signal }) => ({
        call: await call({ taskId: turn.taskId, key, attempt: turn.attempt, uncertain, signal }),
        attempt: turn.attempt,
        key,
      }));
      parts.push(data(done));
    }
    const last = number === order.chunks;
    if (number === 1) yield turn.artifact({ artifactId, name: order.name, parts, open: !last });
    else yield turn.append(artifactId, parts, { last });
    if (number % 4 === 0) yield turn.saveCheckpoint(number);
  }
}

/** Waits for some time, or until the turn ends. */
function pause(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(end, ms);
    function end(): void {
      clearTimeout(timer);
      signal.removeEventListener("abort", end);
      resolve();
    }
    signal.addEventListener("abort", end);
  });
}
