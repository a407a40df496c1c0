import { InvalidArgumentError, type Option } from "commander";
import type { TaskState } from "@parley/a2a/internal/model/index";
import {
  agentUrl,
  argument,
  collect,
  count,
  json,
  option,
  opsUrl,
  stateOption,
  timeOption,
  verbose,
  type CommandSpec,
} from "../options.ts";
import { lineLevels } from "../output/text.ts";

/* `parley ops`, `parley top` and `parley logs`: operators see and change the tasks of all owners. */

const task = argument("<task>", "ID of the task");
const agentName = argument("<agent>", "agent, by its path or mount ID");
const nodeName = argument("<node>", "name of the node, from parley ops nodes");

const opsOptions: readonly Option[] = [
  option("--url <url>", "URL of the operators' API of a server", agentUrl).default(opsUrl),
  option("--token <token>", "bearer token to send; default: the environment variable PARLEY_OPERATOR_TOKEN"),
  option("--header <name: value>", "header to send; repeatable", collect),
  option("--store <path>", "use this SQLite file of a server instead of its API"),
  option("--database-url <url>", "use this PostgreSQL database instead of the API of a server"),
  option("--schema <name>", "with --database-url, schema of the tables").default("parley"),
  json,
  verbose,
];
const reason = option("--reason <text>", "reason to store in the audit");
const agent = option("--agent <id>", "agent of the task, by its path or mount ID; default: the agent that has it");
const oneTask: readonly Option[] = [agent, ...opsOptions];
const actOptions: readonly Option[] = [
  option("--seq <n>", "only if this is the number of the task's last record, from parley ops show", count(1)),
  reason,
  ...oneTask,
];

function states(text: string, before: readonly TaskState[] = []): readonly TaskState[] {
  return [...before, stateOption(text)];
}

export const ops: CommandSpec = {
  name: "ops",
  summary: "See and change the tasks of all owners",
  description:
    "For operators: calls the API of a server that has the option operators, or opens its database. Stores each act in an audit.",
  examples: [
    "parley ops list --state working --oldest",
    "parley ops why TASK",
    "parley ops cancel TASK --reason stuck",
  ],
  commands: [
    {
      name: "list",
      summary: "List tasks",
      description: "Newest status first. --node and --suspended list runs, the oldest lease first.",
      examples: ["parley ops list", "parley ops list --state working --before 1h", "parley ops list --suspended"],
      options: [
        option("--agent <id>", "only this agent, by its path or mount ID"),
        option("--owner <name>", "only this owner, as the list shows it, or by its stored name"),
        option("--state <state>", "only tasks in this state; repeatable", states),
        option("--node <name>", "only tasks with a run that this node holds"),
        option("--suspended", "only suspended tasks"),
        option(
          "--since <time>",
          "only tasks last updated at this time or later, or within an age such as 2h",
          timeOption,
        ),
        option("--before <time>", "only tasks last updated before this time, or longer ago than an age", timeOption),
        option("--oldest", "oldest status first"),
        option("--limit <n>", "maximum number of tasks", count(1, 500)).default(50),
        option("--page <cursor>", "continue where the previous list ended, with the same filter"),
        ...opsOptions,
      ],
      load: async () => (await import("../ops.ts")).list,
    },
    {
      name: "show",
      summary: "Show a task",
      description:
        "Shows why the task waits, its steps, webhooks, latest records and acts of operators, but no content.",
      examples: ["parley ops show TASK", "parley ops show TASK --agent /planner --json"],
      arguments: [task],
      options: oneTask,
      load: async () => (await import("../ops.ts")).show,
    },
    {
      name: "log",
      summary: "Read the log of a task",
      description: "Oldest entry first, without content: what happened when, and in which attempt of which turn.",
      examples: ["parley ops log TASK", "parley ops log TASK --after 1000 --json"],
      arguments: [task],
      options: [
        option("--after <n>", "only entries with a greater number", count(1)),
        option("--limit <n>", "maximum number of entries", count(1, 5_000)).default(1_000),
        ...oneTask,
      ],
      load: async () => (await import("../ops.ts")).log,
    },
    {
      name: "why",
      summary: "Explain why a task waits or ended, and which command helps",
      examples: ["parley ops why TASK"],
      arguments: [task],
      options: oneTask,
      load: async () => (await import("../ops.ts")).why,
    },
    {
      name: "counts",
      summary: "Count tasks by agent and state",
      examples: ["parley ops counts", "parley ops counts --json"],
      options: opsOptions,
      load: async () => (await import("../ops.ts")).counts,
    },
    {
      name: "nodes",
      summary: "List nodes and their runs",
      examples: ["parley ops nodes"],
      options: opsOptions,
      load: async () => (await import("../ops.ts")).nodes,
    },
    {
      name: "audit",
      summary: "List the acts of operators",
      description: "Newest first: who did what, when and why, including rejected acts.",
      examples: ["parley ops audit", "parley ops audit --limit 500 --json"],
      options: [
        option("--limit <n>", "maximum number of acts", count(1, 500)).default(50),
        option("--before <n>", "only acts with a lower number", count(1)),
        ...opsOptions,
      ],
      load: async () => (await import("../ops.ts")).audit,
    },
    {
      name: "cancel",
      summary: "Cancel a task",
      description: "Cancels the task on the node that runs it.",
      examples: ["parley ops cancel TASK --reason stuck", "parley ops cancel TASK --seq 7"],
      arguments: [task],
      options: actOptions,
      load: async () => (await import("../ops.ts")).cancel,
    },
    {
      name: "resume",
      summary: "Resume a suspended or failed task",
      description:
        "Reruns a suspended task. A failed task cannot change, so a new task of the same owner continues it, with its last message, its state and the results of its steps.",
      examples: ["parley ops resume TASK", "parley ops resume TASK --store .parley/parley.db"],
      arguments: [task],
      options: actOptions,
      load: async () => (await import("../ops.ts")).resume,
    },
    {
      name: "retry-step",
      summary: "Repeat a step of a task",
      description: "Forgets the result of a step of a suspended, waiting or failed task, and resumes the task.",
      examples: ["parley ops retry-step TASK pay"],
      arguments: [task, argument("<step>", "name of the step, from parley ops show")],
      options: actOptions,
      load: async () => (await import("../ops.ts")).retryStep,
    },
    {
      name: "drop-wait",
      summary: "End a wait for a time or an event",
      description: "The wait ends as if it had timed out: turn.waitFor() returns undefined.",
      examples: ["parley ops drop-wait TASK WAIT"],
      arguments: [task, argument("<wait>", "key of the wait, from parley ops why")],
      options: actOptions,
      load: async () => (await import("../ops.ts")).dropWait,
    },
    {
      name: "pause",
      summary: "Pause an agent on all nodes",
      description: "No node starts or resumes its turns. New messages are accepted, and wait in the queue.",
      examples: ['parley ops pause / --reason "bad prompt"'],
      arguments: [agentName],
      options: [reason, ...opsOptions],
      load: async () => (await import("../ops.ts")).pause,
    },
    {
      name: "unpause",
      summary: "End the pause of an agent",
      examples: ["parley ops unpause /"],
      arguments: [agentName],
      options: [reason, ...opsOptions],
      load: async () => (await import("../ops.ts")).unpause,
    },
    {
      name: "drain",
      summary: "Drain a node",
      description: "The node starts no new turns, and its readiness probe fails. Running turns continue.",
      examples: ['parley ops drain NODE --reason "new kernel"'],
      arguments: [nodeName],
      options: [reason, ...opsOptions],
      load: async () => (await import("../ops.ts")).drain,
    },
    {
      name: "undrain",
      summary: "Let a node start turns again",
      examples: ["parley ops undrain NODE"],
      arguments: [nodeName],
      options: [reason, ...opsOptions],
      load: async () => (await import("../ops.ts")).undrain,
    },
  ],
};

/** Parses a trace id, or the `traceparent` that has it (W3C Trace Context §3.2). */
function traceOption(text: string): string {
  const [, id] = /^(?:[0-9a-f]{2}-)?([0-9a-f]{32})(?:-[0-9a-f]{16}-[0-9a-f]{2})?$/i.exec(text) ?? [];
  if (id === undefined) throw new InvalidArgumentError("must be a trace ID of 32 hexadecimal digits, or a traceparent");
  return id.toLowerCase();
}

export const logs: CommandSpec = {
  name: "logs",
  summary: "Show and filter the logs of servers",
  description:
    "Reads JSON lines from files, merged by time, or from standard input. Shows other lines unchanged, unless there is a filter.",
  examples: [
    "parley logs agent.log --level warn --since 2h",
    "parley logs agent.log --context CONTEXT",
    "parley logs agent.log --follow",
    "cat agent.log | parley logs --task TASK",
  ],
  arguments: [argument("[file...]", "log files; default or -: standard input")],
  options: [
    option("--task <id>", "only lines about this task; the 8 characters that the log shows are enough"),
    option("--context <id>", "only lines about this conversation and its tasks"),
    option("--trace <id>", "only lines of this trace: its ID or a traceparent", traceOption),
    option("--level <level>", "minimum level").choices(lineLevels),
    option("--since <time>", "only lines of this time or later, or within an age such as 2h", timeOption),
    option("--until <time>", "only lines of this time or before, or at least an age old", timeOption),
    option("--follow", "wait for new lines, even if the file is replaced or truncated"),
    option("--json", "print the JSON lines unchanged"),
    verbose,
  ],
  load: async () => (await import("../logs/index.ts")).logs,
};

export const top: CommandSpec = {
  name: "top",
  summary: "Watch nodes, agents and the queue",
  description: "On a terminal, redraws the view in place. Otherwise prints each view as a line of JSON.",
  examples: ["parley top", "parley top --once --json"],
  options: [
    option("--interval <seconds>", "time between two views", count(1, 3600)).default(2),
    option("--once", "show one view, and exit"),
    ...opsOptions,
  ],
  load: async () => (await import("../top.ts")).top,
};
