import { file } from "@parley/a2a";
import { testAgent } from "@parley/a2a/testing";
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

it("asks for a file where there is none, and says what is wrong with one", async () => {
  const { client, problems } = await given();
  expect((await client.sendMessage("Hello")).message?.parts).toEqual([{ text: "Send me a CSV file." }]);
  const { task } = await client.sendMessage(table("a,b\n1\n"));
  expect(task?.status.state).toBe("TASK_STATE_FAILED");
  expect(task?.status.message?.parts[0]?.text).toMatch(/^This is no table: .*line 2/);
  expect(problems).toEqual([]);
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
