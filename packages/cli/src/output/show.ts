import { line, plain } from "@parley/a2a/internal/base/display";
import type { Message, Task, TaskState } from "@parley/a2a/internal/model/index";
import {
  isInterrupted,
  isTerminal,
  type AgentCard,
  type AgentInterface,
  type AgentSkill,
  type SecurityScheme,
} from "@parley/a2a/model";
import type { PushEntry } from "@parley/server/internal/push/index";
import { showParts, type Fold } from "./parts.ts";
import { endedBadly, listed, maxLength, stateName, table, widthOf, type Style } from "./text.ts";

/* Cards, tasks, webhooks and findings of `parley doctor` as text. */

export function schemeKind(scheme: SecurityScheme | undefined): string {
  if (scheme?.httpAuthSecurityScheme !== undefined) return `HTTP ${scheme.httpAuthSecurityScheme.scheme}`;
  if (scheme?.apiKeySecurityScheme !== undefined) {
    return `API key in ${scheme.apiKeySecurityScheme.location} ${scheme.apiKeySecurityScheme.name}`;
  }
  if (scheme?.oauth2SecurityScheme !== undefined) {
    return `OAuth 2 (${Object.keys(scheme.oauth2SecurityScheme.flows).join(", ")})`;
  }
  if (scheme?.openIdConnectSecurityScheme !== undefined) return "OpenID Connect";
  if (scheme?.mtlsSecurityScheme !== undefined) return "mutual TLS";
  return "unknown";
}

function security(card: AgentCard): readonly string[] {
  return (card.securityRequirements ?? []).map((requirement) =>
    Object.entries(requirement.schemes ?? {})
      .map(([name, scopes]) => {
        const list = scopes.list ?? [];
        const wanted = list.length === 0 ? "" : `, scopes ${list.join(" ")}`;
        return `${name} (${schemeKind(card.securitySchemes?.[name])}${wanted})`;
      })
      .join(" and "),
  );
}

type Row = readonly [name: string, value: string];

/** Rows of a list: the first row is named `name`, the others `more`. */
function rowsOf<T>(name: string, entries: readonly T[], show: (entry: T) => string, more = ""): readonly Row[] {
  return listed(entries, show).map((text, i) => [i === 0 ? name : more, text]);
}

/** An agent card as readable text (A2A 1.0 §4.4.1). */
export function showCard(card: AgentCard, style: Style): string {
  const can = [
    card.capabilities.streaming === true ? "streaming" : undefined,
    card.capabilities.pushNotifications === true ? "push notifications" : undefined,
    card.capabilities.extendedAgentCard === true ? "extended card" : undefined,
  ].filter((word) => word !== undefined);
  const rows: Row[] = [
    ...rowsOf("interfaces", card.supportedInterfaces, showInterface),
    ["capabilities", can.length === 0 ? "none" : can.join(", ")],
    ["takes", card.defaultInputModes.join(", ")],
    ["gives", card.defaultOutputModes.join(", ")],
    ...rowsOf("security", security(card), (text) => text, "or"),
    ...rowsOf(
      "extensions",
      card.capabilities.extensions ?? [],
      ({ uri, required }) => `${uri ?? "?"}${required === true ? " (required)" : ""}`,
    ),
  ];
  if (card.provider !== undefined) rows.push(["provider", `${card.provider.organization}  ${card.provider.url}`]);
  if (card.documentationUrl !== undefined) rows.push(["documentation", card.documentationUrl]);
  if (card.signatures !== undefined) rows.push(["signatures", `${card.signatures.length}, not verified`]);
  return [
    `${style("bold", line(card.name, maxLength.name))} ${line(card.version, maxLength.name)}\n`,
    `${plain(card.description, maxLength.description)}\n\n`,
    table(rows.map(([name, value]) => [name, line(value)])),
    ...(card.skills.length === 0 ? [] : [`\n${style("bold", "Skills")}\n`]),
    ...listed(card.skills, (skill) => showSkill(skill, style)).map((text) => `  ${text.trimEnd()}\n`),
  ].join("");
}

function showInterface({ url, protocolBinding, protocolVersion, tenant }: AgentInterface): string {
  return `${protocolBinding} ${protocolVersion}  ${url}${tenant === undefined ? "" : `  (tenant ${tenant})`}`;
}

function showSkill(skill: AgentSkill, style: Style): string {
  const tags = skill.tags.length === 0 ? "" : style("dim", `  [${line(skill.tags.join(", "))}]`);
  const examples = listed(skill.examples ?? [], (example) => `${style("dim", ">")} ${line(example)}`);
  return [
    `${style("bold", line(skill.name, maxLength.name))}${tags}`,
    `    ${line(skill.description)}`,
    ...examples.map((example) => `    ${example}`),
  ].join("\n");
}

function showState(state: TaskState, style: Style): string {
  const text = stateName(state);
  if (endedBadly(state)) return style("red", text);
  if (isTerminal(state)) return style("green", text);
  return style(isInterrupted(state) ? "yellow" : "cyan", text);
}

function indented(text: string): string {
  return text
    .trimEnd()
    .split("\n")
    .map((each) => `  ${each}\n`)
    .join("");
}

function showMessage(message: Message, style: Style, fold: Fold): string {
  const who = message.role === "ROLE_USER" ? "user" : "agent";
  return `${style("dim", `${who}:`)}\n${indented(showParts(message.parts, { fold, indent: 2 }))}`;
}

/** A task as text: state, messages, artifacts. */
export function showTask(task: Task, style: Style, fold: Fold): string {
  const { status } = task;
  const rows: (readonly [string, string])[] = [
    ["task", line(task.id)],
    ...(task.contextId === undefined ? [] : [["context", line(task.contextId)] as const]),
    ["state", stateName(status.state)],
    ...(status.timestamp === undefined ? [] : [["since", line(status.timestamp)] as const]),
  ];
  const history = task.history ?? [];
  const said = history.some((message) => message.messageId === status.message?.messageId);
  return [
    table(rows, (cell, row, column) =>
      column === 1 && rows[row]?.[0] === "state" ? showState(status.state, style) : cell,
    ),
    ...history.map((message) => `\n${showMessage(message, style, fold)}`),
    ...(status.message === undefined || said ? [] : [`\n${showMessage(status.message, style, fold)}`]),
    ...(task.artifacts ?? []).map(
      (artifact) =>
        `\n${style("bold", `◆ ${line(artifact.name ?? artifact.artifactId, maxLength.name)}`)}\n${indented(showParts(artifact.parts, { fold, indent: 2 }))}`,
    ),
  ].join("");
}

/** Tasks as a table with one line each. Omits contexts if they do not fit into the columns of a terminal. */
export function showTasks(tasks: readonly Task[], style: Style, columns: number = Infinity): string {
  const rows = tasks.map(({ id, contextId, status }) => [
    line(id),
    stateName(status.state),
    line(status.timestamp ?? ""),
    line(contextId ?? ""),
  ]);
  const all = [["TASK", "STATE", "SINCE", "CONTEXT"], ...rows];
  const fits = table(all)
    .split("\n")
    .every((text) => widthOf(text) <= columns);
  return table(fits ? all : all.map((row) => row.slice(0, -1)), (cell, row, column) => {
    if (row === 0) return style("dim", cell);
    const state = tasks[row - 1]?.status.state;
    return column === 1 && state !== undefined ? showState(state, style) : cell;
  });
}

/** Webhooks as a table. It names their agents unless all have the agent `usual`. */
export function showWebhooks(entries: readonly PushEntry[], usual: string, style: Style): string {
  const others = entries.some(({ task }) => task.agent !== usual);
  const rows = entries.map((entry) => [
    ...(others ? [line(entry.task.agent)] : []),
    line(entry.task.taskId),
    line(entry.configId),
    entry.state,
    timeOf(entry.due),
    line(entry.url),
    line(entry.problem?.reason ?? ""),
  ]);
  const header = [...(others ? ["AGENT"] : []), "TASK", "WEBHOOK", "STATE", "TIME", "ADDRESS", "PROBLEM"];
  return table([header, ...rows], (cell, row, column) => {
    if (row === 0) return style("dim", cell);
    const entry = entries[row - 1];
    return entry !== undefined && header[column] === "STATE" ? paintWebhookState(entry, cell, style) : cell;
  });
}

/** A webhook with all its details. */
export function showWebhook(entry: PushEntry, style: Style): string {
  const { state, problem, attempts } = entry;
  const rows: (readonly [string, string])[] = [
    ["webhook", line(entry.configId)],
    ["address", line(entry.url)],
    ["owner", line(entry.task.owner)],
    ["version", line(entry.version)],
    ["state", state],
    ...(entry.due === undefined ? [] : [[timeNames[state], timeOf(entry.due)] as const]),
    ["delivered", String(entry.delivered)],
    ...(attempts === 0 ? [] : [["attempts", String(attempts)] as const]),
    ...(problem === undefined ? [] : [["problem", `${line(problem.reason)} (${timeOf(problem.at)})`] as const]),
  ];
  const about = table(rows, (cell, row, column) =>
    column === 1 && rows[row]?.[0] === "state" ? paintWebhookState(entry, cell, style) : cell,
  );
  if (entry.refused.length === 0) return about;
  const refused = entry.refused.map(({ seq, at, reason }) => [`  ${seq}`, timeOf(at), line(reason)]);
  return (
    about +
    table([["  REJECTED", "TIME", "PROBLEM"], ...refused], (cell, row) => (row === 0 ? style("dim", cell) : cell))
  );
}

/** Name of `due` by state. */
const timeNames = { idle: "time", due: "next", delivering: "until", parked: "since" } as const;

function timeOf(time: number | undefined): string {
  if (time === undefined) return "";
  const date = new Date(time);
  return Number.isNaN(date.getTime()) ? "" : date.toISOString();
}

function paintWebhookState({ state }: PushEntry, cell: string, style: Style): string {
  if (state === "parked") return style("red", cell);
  return state === "idle" ? style("green", cell) : style("yellow", cell);
}

export type Subject = "card" | "tls" | "address" | "versions" | "clients" | "streams" | "clock";

/** The result of one check. */
export interface Finding {
  readonly subject: Subject;
  /**
   * - `ok`: correct.
   * - `warning`: works, but not for every client, or not for long.
   * - `broken`: clients fail.
   * - `unknown`: could not be checked.
   */
  readonly verdict: "ok" | "warning" | "broken" | "unknown";
  /** What was found. */
  readonly seen: string;
  /** How to fix it, if something is wrong. */
  readonly cure?: string;
}

const marks = { ok: "✓", warning: "!", broken: "✗", unknown: "–" } as const;
const colours = { ok: "green", warning: "yellow", broken: "red", unknown: "dim" } as const;

/** Limited, because parts of a finding may come from a server. */
const maxFindingLength = 1000;

/** A finding as one line for a terminal, and its cure as another. */
export function showFinding({ subject, verdict, seen, cure }: Finding, style: Style): string {
  const head = `${style(colours[verdict], marks[verdict])} ${subject.padEnd(8)}  `;
  const rest = cure === undefined ? "" : `${" ".repeat(12)}${style("bold", "→")} ${line(cure, maxFindingLength)}\n`;
  return `${head}${line(seen, maxFindingLength)}\n${rest}`;
}
