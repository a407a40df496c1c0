import { testAgent } from "@parley/testing";
import { expect, it, onTestFinished } from "vitest";
import agent from "../agent.ts";

async function given() {
  const tested = await testAgent(agent);
  onTestFinished(() => tested.close());
  return tested;
}

/** The words of a story. `onWord` is called with the number of each. */
async function story(
  { client, clock }: Awaited<ReturnType<typeof given>>,
  line: string,
  onWord: (count: number) => Promise<void> = async () => undefined,
): Promise<readonly string[]> {
  const words: string[] = [];
  const tell = async (): Promise<void> => {
    for await (const { artifactUpdate } of client.sendStreamingMessage(line)) {
      if (artifactUpdate === undefined) continue;
      words.push(artifactUpdate.artifact.parts[0]?.text ?? "");
      await onWord(words.length);
    }
  };
  await clock.until(tell());
  return words;
}

it("tells a story word by word, the same one for the same line", async () => {
  const tested = await given();
  const words = await story(tested, "Once upon a time");
  expect(words).toHaveLength(100);
  expect(words.join("")).toMatch(/^the [\w ]+$/);
  expect(await story(tested, "Once upon a time")).toEqual(words);
  expect(await story(tested, "Far away")).not.toEqual(words);
});

it("continues after a crash at the next word", async () => {
  const tested = await given();
  const whole = await story(tested, "Once upon a time");
  const words = await story(tested, "Once upon a time", async (count) => {
    if (![1, 37, 99].includes(count)) return;
    await tested.crash();
    await tested.restart();
  });
  expect(words).toEqual(whole);
  expect(tested.problems).toEqual([]);
});

it("stops when it is canceled, and asks for a line if there is none", async () => {
  const { client, clock } = await given();
  const immediately = { configuration: { returnImmediately: true } };
  const { task } = await clock.until(client.sendMessage({ message: "Once upon a time", ...immediately }));
  await client.cancelTask(task!);
  await clock.advance(60_000);
  const { status, artifacts } = await client.getTask(task!);
  expect(status.state).toBe("TASK_STATE_CANCELED");
  expect(artifacts?.[0]?.parts.length).toBeLessThan(20);
  expect((await client.sendMessage("")).message?.parts).toEqual([{ text: "Give me a first line." }]);
});
