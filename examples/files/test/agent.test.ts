import { file, memoryStore, serve } from "@parley/node";
import { testAgent } from "@parley/testing";
import { expect, it, onTestFinished } from "vitest";
import agent from "../agent.ts";

async function given() {
  const tested = await testAgent(agent);
  onTestFinished(() => tested.close());
  return tested;
}

/** A message with a table. */
function table(csv: string) {
  return {
    message: { parts: [file(new TextEncoder().encode(csv), { filename: "birds.csv", mediaType: "text/csv" })] },
  };
}

const rows = Array.from({ length: 20_000 }, (_, n) => `${n},"bird, number ${n}"`);
const lines = rows.map((_, n) => `${JSON.stringify({ id: `${n}`, name: `bird, number ${n}` })}\n`).join("");

it("converts a table, in chunks of one artifact with the name of the file", async () => {
  const { client } = await given();
  const { task } = await client.sendMessage(table(`id,name\n${rows.join("\n")}\n`));
  const [artifact] = task?.artifacts ?? [];
  expect(artifact?.name).toBe("birds.jsonl");
  expect(artifact?.parts.length).toBeGreaterThan(3);
  const bytes = Buffer.concat(artifact?.parts.map(({ raw }) => Buffer.from(raw ?? "", "base64")) ?? []);
  expect(bytes.toString()).toBe(lines);
});

it("asks for a file if there is none, and says what is wrong with one", async () => {
  const { client, problems } = await given();
  expect((await client.sendMessage("Hello")).message?.parts).toEqual([{ text: "Send me a CSV file." }]);
  const { task } = await client.sendMessage(table("a,b\n1\n"));
  expect(task?.status.state).toBe("TASK_STATE_FAILED");
  expect(task?.status.message?.parts[0]?.text).toMatch(/^This is not a table: .*line 2/);
  expect(problems).toEqual([]);
});

it("rejects the document.pdf of the guide with the code of its table, over 0.3 (0.2.5, usage example 2)", async () => {
  const server = await serve(agent, { port: 0, store: memoryStore(), logger: false });
  onTestFinished(() => server.close());
  const bytes = Buffer.from("%PDF-1.4\n%%EOF\n").toString("base64");
  const part = { kind: "file", file: { bytes, name: "document.pdf", mimeType: "application/pdf" } };
  const message = { kind: "message", messageId: "msg-002", role: "user", parts: [part] };
  const body = { jsonrpc: "2.0", id: "req-001", method: "message/send", params: { message } };
  const headers = { "Content-Type": "application/json" };
  const answer = await fetch(server.url, { method: "POST", headers, body: JSON.stringify(body) });
  expect(await answer.json()).toMatchObject({ id: "req-001", error: { code: -32005 } });
});

it("sends each byte once, although its process is killed between the chunks", async () => {
  const { client, crash, restart, problems } = await given();
  const received: Buffer[] = [];
  for await (const { artifactUpdate } of client.sendStreamingMessage(table(`id,name\n${rows.join("\n")}\n`))) {
    if (artifactUpdate === undefined) continue;
    received.push(Buffer.from(artifactUpdate.artifact.parts[0]?.raw ?? "", "base64"));
    if (received.length < 4) {
      await crash();
      await restart();
    }
  }
  expect(Buffer.concat(received).toString()).toBe(lines);
  expect(problems).toEqual([]);
});
