import { defineAgent, memoryStore, nodeDialer, serve, type AgentEvent, type AgentYield, type Turn } from "@parley/node";
import { sqliteStore } from "@parley/sql/sqlite";
import { answerText, Bell, paced, stampedText } from "./commands.ts";
import { control } from "./control.ts";

// Parley with webhooks: node push.js memory|FILE. From the next `emit` on, `report COUNT GAP` creates COUNT complete artifacts, GAP
// milliseconds apart, each of which is a delivery. With `stay`, the task then waits for another `emit`.

const [place = "memory"] = process.argv.slice(2);
const bell = new Bell();

async function* onMessage(turn: Turn): AsyncGenerator<AgentYield, AgentEvent | void, void> {
  const [name, count, gap] = turn.text.split(" ", 3);
  if (name === "emit") {
    bell.ring();
    return turn.reply(answerText);
  }
  yield turn.working();
  for (;;) {
    await bell.wait();
    for await (const number of paced(Number(count), Number(gap))) {
      yield turn.artifact({ artifactId: `a${number}`, parts: [{ text: stampedText(number) }] });
    }
  }
}

const agent = defineAgent({
  name: "Benchmark",
  description: "Reports by webhook.",
  version: "1.0.0",
  skills: [],
  onMessage,
});
const store = place === "memory" ? memoryStore() : await sqliteStore({ path: place });
const { url } = await serve(agent, {
  port: 0,
  store,
  push: { keys: [btoa(String.fromCharCode(...crypto.getRandomValues(new Uint8Array(32))))], dialer: nodeDialer() },
});
control({ jsonRpc: url, rest: url });
