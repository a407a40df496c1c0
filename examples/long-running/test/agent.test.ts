import { testAgent } from "@parley/a2a/testing";
import { expect, it, onTestFinished } from "vitest";
import agent from "../agent.ts";
import { countPrimes } from "../primes.ts";

async function given() {
  const tested = await testAgent(agent);
  onTestFinished(() => tested.close());
  return tested;
}

it.each([
  [2, 11, 4],
  [2, 100, 25],
  [2, 1_000_000, 78_498],
  [9_000_000, 10_000_001, 62_090],
])("counts the primes from %i to %i, as the tables have them", (from, to, count) => {
  expect(countPrimes(from, to)).toBe(count);
});

it("counts with progress, and asks for a number where there is none", async () => {
  const { client } = await given();
  const { task } = await client.sendMessage("primes up to 10000000");
  expect(task?.artifacts?.[0]?.parts).toEqual([{ text: "664579" }, { data: { limit: 10_000_000, count: 664_579 } }]);
  const { message } = await client.sendMessage("primes up to 1000000000000");
  expect(message?.parts[0]?.text).toContain("Up to which number?");
});

it("counts each piece once, however often its process is killed", async () => {
  const { client, crash, restart, problems } = await given();
  const said: string[] = [];
  for await (const { statusUpdate } of client.sendStreamingMessage("primes up to 10000000")) {
    const text = statusUpdate?.status.message?.parts[0]?.text;
    if (text === undefined) continue;
    said.push(text);
    if (said.length % 3 === 0) {
      await crash();
      await restart();
    }
  }
  expect(said.map((text) => / below (\d+)$/.exec(text)?.[1])).toEqual([
    ...Array.from({ length: 9 }, (_, n) => String((n + 1) * 1_000_000 + 2)),
    "10000001",
  ]);
  expect(said.at(-1)).toMatch(/^664579 /);
  expect(problems).toEqual([]);
});
