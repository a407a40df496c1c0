import type { AgentCard } from "@parley/a2a";
import type { AgentEntry, WireRecord } from "../src/api.ts";
import { allChats } from "./chats.ts";
import { go } from "./route.ts";
import { agents } from "./server.ts";
import { isObject, isRecord, type Json } from "./records.ts";
import { fileProblem, readOnly, type SavedChat, type SavedSession } from "./saved.ts";
import type { Entry } from "./talk.ts";
import { recordsOf, showRecords } from "./wire.ts";

/* Session files, with the wire traffic and the conversations. Secrets are masked as on the page. */

/** Maximum size of a file, in bytes. */
const maxBytes = 64 << 20;

/** Saves the wire traffic and the conversations of the page. */
export function save(): void {
  const shown = readOnly.value;
  const session: SavedSession = {
    parley: "session",
    version: 1,
    savedAt: new Date().toISOString(),
    agents: agents.value.map(({ id, url, binding, version, card }) => ({ id, path: "", url, binding, version, card })),
    wire: recordsOf(),
    chats: shown?.chats ?? allChats().map(({ agent, entries }) => ({ agent: agent.id, entries: entries.value })),
  };
  const url = URL.createObjectURL(new Blob([JSON.stringify(session)], { type: "application/json" }));
  const link = document.createElement("a");
  link.href = url;
  link.download = `parley-session-${session.savedAt.replace(/[:.]/g, "-")}.json`;
  link.click();
  setTimeout(() => URL.revokeObjectURL(url), 1_000);
}

/** Lets the user select a file, and opens it. */
export function choose(): void {
  const input = document.createElement("input");
  input.type = "file";
  input.accept = "application/json,.json";
  input.onchange = () => {
    const [file] = input.files ?? [];
    if (file !== undefined) void openFile(file);
  };
  input.click();
}

async function openFile(file: File): Promise<void> {
  try {
    if (file.size > maxBytes) throw new Error(`The file has ${file.size} bytes; the maximum is ${maxBytes}`);
    const saved = sessionIn(await file.text());
    readOnly.value = saved;
    showRecords(saved.wire);
    fileProblem.value = "";
    go({ screen: "talk" });
  } catch (thrown) {
    fileProblem.value = thrown instanceof Error ? thrown.message : String(thrown);
  }
}

/** Parses a session file. Throws if it is invalid. */
function sessionIn(text: string): SavedSession {
  let read: unknown;
  try {
    read = JSON.parse(text);
  } catch {
    throw new Error("The file is not a session: it is not valid JSON");
  }
  if (!isObject(read) || read["parley"] !== "session")
    throw new Error("The file is not a session of the Parley console");
  if (read["version"] !== 1)
    throw new Error(`The session has version ${String(read["version"])}; this console reads 1`);
  const { wire, chats, agents: listed, savedAt } = read;
  if (!Array.isArray(wire) || !Array.isArray(chats) || !Array.isArray(listed)) throw broken("a list is missing");
  return {
    parley: "session",
    version: 1,
    savedAt: typeof savedAt === "string" ? savedAt : "",
    agents: listed.map(agentIn),
    wire: wire.map(recordIn),
    chats: chats.map(chatIn),
  };
}

const broken = (why: string): Error => new Error(`The session cannot be read: ${why}`);

function agentIn(value: unknown): AgentEntry {
  if (!isObject(value)) throw broken("an agent must be an object");
  const text = (name: string): string => textOf(value[name], `${name} of an agent`);
  const { card } = value;
  if (!isCard(card)) throw broken("a card is incomplete");
  return { id: text("id"), path: "", url: text("url"), binding: text("binding"), version: text("version"), card };
}

/** Whether a card has the members that the screens need. */
function isCard(value: unknown): value is AgentCard {
  if (!isObject(value)) return false;
  const { name, description, version, skills, provider } = value;
  const isProvider = isObject(provider) && hasTexts(provider, "organization", "url");
  return (
    [name, description, version].every((each) => typeof each === "string") &&
    Array.isArray(skills) &&
    skills.every((skill) => isObject(skill) && hasTexts(skill, "id", "name", "description")) &&
    (provider === undefined || isProvider)
  );
}

function hasTexts(value: Json, ...names: readonly string[]): boolean {
  return names.every((name) => typeof value[name] === "string");
}

function textOf(value: unknown, what: string): string {
  if (typeof value !== "string") throw broken(`${what} must be a string`);
  return value;
}

function recordIn(value: unknown): WireRecord {
  if (!isRecord(value)) throw broken("a record of the wire is incomplete");
  return value;
}

function chatIn(value: unknown): SavedChat {
  if (!isObject(value) || !Array.isArray(value["entries"])) throw broken("a conversation has no entries");
  const entries = value["entries"].map((entry: unknown) => {
    if (!isEntry(entry)) throw broken("an entry of a conversation is incomplete");
    return entry;
  });
  return { agent: textOf(value["agent"], "agent of a conversation"), entries };
}

function isEntry(value: unknown): value is Entry {
  if (!isObject(value)) return false;
  const { kind, message, task } = value;
  if (kind === "failed") return typeof message === "string";
  if (kind === "sent" || kind === "reply") return isMessage(message);
  return kind === "task" && isTask(task);
}

function isTask(value: unknown): boolean {
  if (!isObject(value) || typeof value["id"] !== "string" || !isObject(value["status"])) return false;
  const { artifacts = [], status } = value;
  if (typeof status["state"] !== "string") return false;
  if (status["message"] !== undefined && !isMessage(status["message"])) return false;
  return Array.isArray(artifacts) && artifacts.every(isMessage);
}

/** A message, or an artifact: both have parts. */
function isMessage(value: unknown): boolean {
  return isObject(value) && Array.isArray(value["parts"]) && value["parts"].every(isPart);
}

function isPart(value: unknown): boolean {
  if (!isObject(value)) return false;
  return ["text", "raw", "url", "filename", "mediaType"].every(
    (name) => value[name] === undefined || typeof value[name] === "string",
  );
}
