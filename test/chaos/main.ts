import { tmpdir } from "node:os";
import { mkdtempSync } from "node:fs";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { timeline } from "./check.ts";
import { mutations, type Mutation } from "./mutations.ts";
import { chaos, type ChaosResult } from "./run.ts";

// The program of `npm run chaos`. Options: --help. Exits with 1 if a promise was broken.

const help = `npm run chaos -- [options]

A cluster of nodes on PostgreSQL, behind a balancer, while its processes, its database and its connections are harmed. Says
whether every promise was kept. The same seed has the same plan of faults and conversations.

  --minutes N         how long (3)
  --seed S            of the plan (random)
  --nodes N           how many nodes (3)
  --conversations N   how many conversations at the same time (200)
  --ttl MS            how long a lease lasts (3000)
  --mutate NAME       a store that is wrong: ${mutations.join(", ")}. The run has to find it
  --folder PATH       where the history is kept (a new one)
`;

function say(line: string): void {
  process.stdout.write(`${line}\n`);
}

function number(text: string, name: string, least: number): number {
  const value = Number(text);
  if (!(value >= least)) throw new Error(`--${name} must be a number from ${least}, and not ${text}`);
  return value;
}

function report({ verdict, history, logs }: ChaosResult, again: string, folder: string): void {
  const { violations, counts, promptness } = verdict;
  for (const [name, count] of Object.entries(counts).toSorted(([one], [other]) => one.localeCompare(other)))
    say(`${String(count).padStart(9)}  ${name}`);
  say(`Without harm, last events reached their readers in ${promptness.median} ms (p50), ${promptness.p99} ms (p99)`);
  say(`Of ${promptness.ends} tasks that ended without harm, ${promptness.told} had ended when the last wake-up came`);
  if (violations.length === 0) return say("Every promise was kept");
  for (const rule of new Set(violations.map((each) => each.rule))) {
    const broken = violations.filter((each) => each.rule === rule);
    say(`\n${broken.length} times broken: ${rule}`);
    for (const { taskId, what } of broken.slice(0, 5)) say(`  ${taskId} ${what}`);
  }
  const [first] = violations;
  if (first !== undefined && first.taskId !== "") {
    say(`\nWhat happened to ${first.taskId}:`);
    for (const line of timeline(
      first,
      history,
      logs.find(({ taskId }) => taskId === first.taskId),
    ))
      say(`  ${line}`);
  }
  say(`\nThe history is in ${folder}\nAgain: ${again}`);
}

const { values } = parseArgs({
  options: {
    minutes: { type: "string", default: "3" },
    seed: { type: "string", default: String(Math.floor(Math.random() * 2 ** 31)) },
    nodes: { type: "string", default: "3" },
    conversations: { type: "string", default: "200" },
    folder: { type: "string", default: "" },
    ttl: { type: "string", default: "3000" },
    mutate: { type: "string" },
    help: { type: "boolean", default: false },
  },
});

if (values.help) say(help);
else {
  const folder = values.folder === "" ? mkdtempSync(join(tmpdir(), "parley-chaos-")) : values.folder;
  const { mutate } = values;
  if (mutate !== undefined && !mutations.includes(mutate as Mutation)) throw new Error(`No mutation ${mutate}`);
  const options = {
    minutes: number(values.minutes, "minutes", 0.1),
    seed: number(values.seed, "seed", 0),
    nodes: number(values.nodes, "nodes", 1),
    conversations: number(values.conversations, "conversations", 1),
    ttl: number(values.ttl, "ttl", 100),
    ...(mutate !== undefined && { mutation: mutate as Mutation }),
  };
  const { minutes, seed, nodes, conversations } = options;
  const more = mutate === undefined ? "" : ` --mutate ${mutate}`;
  const again = `npm run chaos -- --minutes ${minutes} --seed ${seed} --nodes ${nodes} --conversations ${conversations}${more}`;
  say(again);
  const result = await chaos({ ...options, folder, say });
  report(result, again, folder);
  // Exits explicitly, because a client retries forever if its task does not end.
  process.exit(result.verdict.violations.length > 0 ? 1 : 0);
}
