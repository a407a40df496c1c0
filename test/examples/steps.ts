import { data, file, type Part } from "@parley/server";
import type { Reader, Told } from "./reader.ts";
import type { Example } from "./program.ts";

/** Returns a table with this many rows. */
function table(rows: number): readonly Part[] {
  const lines = Array.from({ length: rows }, (_, n) => `${n},"bird, number ${n}"\n`);
  const bytes = new TextEncoder().encode(`id,name\n${lines.join("")}`);
  return [file(bytes, { filename: "birds.csv", mediaType: "text/csv" })];
}

const taxi = { date: "2026-01-02", amount: 40, purpose: "Taxi" };

const wish = "I want to go to London for 5 days in July.";
const answers = [
  ["dollars", "4000"],
  ["airport", "Oslo"],
  ["Tube", "Holborn"],
  ["car", "Yes, please"],
] as const;

/** A client's calls to each example. The answers must be the same from our agent and the official SDK's, whether or not its process is killed. */
export const steps: Readonly<Record<Example, (reader: Reader) => Promise<readonly Told[]>>> = {
  "token-streamer": async (reader) => [await reader.send("Once upon a time"), await reader.send("")],
  "long-running": async (reader) => [await reader.send("primes up to 40000000"), await reader.send("Hello")],
  reimbursement: async (reader) => [
    await reader.send("I had to take a taxi"),
    await reader.send([data({ ...taxi, amount: -1, date: "yesterday" })]),
    await reader.send([data(taxi)]),
    await reader.send([data({ ...taxi, amount: 4000 })]),
    await reader.send("Grace"),
  ],
  files: async (reader) => [
    await reader.send(table(20_000)),
    await reader.send([file(new TextEncoder().encode("a,b\n1,2\n3\n"), { filename: "odd", mediaType: "text/csv" })]),
    await reader.send("Hello"),
  ],
  // The experts ask in any order, so each answer depends on the question. Their reports also arrive in any order, and a report may be missing if
  // an expert makes it while the planner waits for an answer.
  "travel-planner": async (reader) => {
    const questions: Told[] = [];
    let told = await reader.send(wish);
    while (told.state === "TASK_STATE_INPUT_REQUIRED") {
      const question = told.said.at(-1) ?? "";
      questions.push({ state: told.state, said: [question], artifacts: {} });
      told = await reader.send(answers.find(([word]) => question.includes(word))?.[1] ?? "");
    }
    const asked = questions.toSorted((one, other) => (one.said.join() < other.said.join() ? -1 : 1));
    return [...asked, { ...told, said: [] }];
  },
  // Our agent's questions also contain the call as data, with ids that differ each time, and a form.
  "ai-sdk": async (reader) => {
    const told: Told[] = [];
    for (const text of ["Pay invoice 7", "What for?", "yes", "Pay invoice 8", "no"]) {
      const { said, ...rest } = await reader.send(text);
      told.push({ ...rest, said: said.map((each) => each.split("\n", 1)[0] ?? "") });
    }
    return told;
  },
};

/** Starts a task of an example and cancels it. Returns the task's state. */
export const cancels: Readonly<Record<Example, (reader: Reader) => Promise<string | undefined>>> = {
  "token-streamer": (reader) => reader.cancel("Once upon a time", 10),
  "long-running": (reader) => reader.cancel("primes up to 10000000000", 10),
  reimbursement: (reader) => reader.cancel("I had to take a taxi"),
  files: (reader) => reader.cancel(table(100_000), 3),
  "travel-planner": (reader) => reader.cancel(wish),
  "ai-sdk": (reader) => reader.cancel("Pay invoice 7"),
};
