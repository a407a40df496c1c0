import type { Artifact, Message, Part, Task } from "@parley/a2a";
import { isInterrupted, isTerminal } from "@parley/a2a/model";
import { line } from "@parley/a2a/protocol";
import type { CallToolResult, ContentBlock } from "@modelcontextprotocol/server";
import { cutBytes } from "./skills.ts";

/* Converts tasks and replies to tool results. */

/** The caller's handles for a task and its conversation. */
export interface Names {
  readonly taskId?: string | undefined;
  readonly contextId?: string | undefined;
}

/** Limits of a result. */
export interface ResultLimits {
  readonly maxBytes: number;
  /** The resource URI of an artifact. */
  uriOf(taskId: string, artifactId: string): string;
}

/** The state of a task in plain words, such as `input required`. */
export function stateName(task: Task): string {
  return task.status.state.replace("TASK_STATE_", "").toLowerCase().replaceAll("_", " ");
}

/** The result for a direct reply. */
export function replyResult(message: Message, names: Names, limits: ResultLimits): CallToolResult {
  const made = new Content(limits);
  made.add(message.parts);
  made.note([names.contextId === undefined ? "" : `contextId: ${names.contextId}`]);
  return { ...made.result(), _meta: metaOf(names, undefined) };
}

/** The result for a task in any state. */
export function taskResult(task: Task, names: Names, limits: ResultLimits): CallToolResult {
  const { state, message } = task.status;
  const made = new Content(limits);
  if (message !== undefined) made.add(message.parts.filter((part) => part.data === undefined || isTerminal(state)));
  for (const artifact of task.artifacts ?? []) made.artifact(artifact, names.taskId);
  made.note([
    `Task ${stateName(task)}.`,
    `taskId: ${names.taskId}`,
    names.contextId === undefined ? "" : `contextId: ${names.contextId}`,
    isTerminal(state) ? "" : nextStep(task),
  ]);
  const isError = state === "TASK_STATE_FAILED" || state === "TASK_STATE_REJECTED";
  return { ...made.result(), ...(isError && { isError }), _meta: metaOf(names, state) };
}

function nextStep({ status: { state } }: Task): string {
  if (state === "TASK_STATE_INPUT_REQUIRED") return "It waits for an answer: call answer_task with this taskId.";
  if (isInterrupted(state)) return "A person must authorize it. Afterwards call get_task with this taskId.";
  return "It is still running: call get_task with this taskId to wait for it, or cancel_task to stop it.";
}

function metaOf({ taskId, contextId }: Names, state: string | undefined): Record<string, string> {
  return {
    ...(taskId !== undefined && { "a2a.taskId": taskId }),
    ...(contextId !== undefined && { "a2a.contextId": contextId }),
    ...(state !== undefined && { "a2a.state": state }),
  };
}

type Structured = Record<string, unknown>;

/** Approximate overhead of a block: members, quotes and commas. */
const blockBytes = 64;

/** Maximum number of oversized parts to list by name. */
const maxNamed = 20;

const maxName = 200;

const maxUri = 2000;

/** Builds the content of a result within its limit. */
class Content {
  readonly #limits: ResultLimits;
  readonly #blocks: ContentBlock[] = [];
  readonly #data: unknown[] = [];
  #bytes = 0;
  #missing = 0;
  #note = "";

  constructor(limits: ResultLimits) {
    this.#limits = limits;
  }

  artifact(artifact: Artifact, taskId: string | undefined): void {
    const uri = taskId === undefined ? "" : this.#limits.uriOf(taskId, artifact.artifactId);
    this.add(artifact.parts, uri === "" || uri.length > maxUri ? undefined : uri, artifact.name);
  }

  /** `uri` identifies the resource with all parts. */
  add(parts: readonly Part[], uri?: string, name = "artifact"): void {
    for (const part of parts) this.#add(part, uri, line(part.filename ?? name, maxName));
  }

  #add(part: Part, uri: string | undefined, name: string): void {
    const { mediaType } = part;
    if (part.text !== undefined) this.#text(part.text, uri, name);
    else if (part.url !== undefined) this.#link(part.url, name, mediaType);
    else if (part.raw !== undefined) this.#file(part.raw, uri, name, mediaType ?? "application/octet-stream");
    else {
      this.#data.push(part.data);
      // Clients that do not read structured content need the data as text too.
      this.#text(JSON.stringify(part.data), uri, name);
    }
  }

  #file(data: string, uri: string | undefined, name: string, mimeType: string): void {
    const at = uri ?? `a2a:file/${encodeURIComponent(name)}`;
    if (!this.#takes(data.length + mimeType.length + at.length)) this.#tooLarge(data.length, uri, name, mimeType);
    else if (mimeType.startsWith("image/")) this.#blocks.push({ type: "image", data, mimeType });
    else if (mimeType.startsWith("audio/")) this.#blocks.push({ type: "audio", data, mimeType });
    else this.#blocks.push({ type: "resource", resource: { uri: at, mimeType, blob: data } });
  }

  #text(text: string, uri: string | undefined, name: string): void {
    const { length } = new TextEncoder().encode(text);
    const room = this.#limits.maxBytes - this.#bytes - blockBytes;
    if (this.#takes(length)) this.#blocks.push({ type: "text", text });
    else {
      this.#bytes = this.#limits.maxBytes;
      if (room > 0) this.#blocks.push({ type: "text", text: cutBytes(text, room) });
      this.#tooLarge(length, uri, name, "text/plain");
    }
  }

  #takes(bytes: number): boolean {
    if (this.#bytes + bytes + blockBytes > this.#limits.maxBytes) return false;
    this.#bytes += bytes + blockBytes;
    return true;
  }

  #tooLarge(bytes: number, uri: string | undefined, name: string, mimeType: string): void {
    this.#missing += 1;
    if (this.#missing > maxNamed) return;
    const where = uri === undefined ? "" : "; read it as a resource";
    this.#blocks.push({ type: "text", text: `[${name} is too large for this answer: ${bytes} bytes${where}]` });
    if (uri !== undefined) this.#blocks.push({ type: "resource_link", uri, name, mimeType: line(mimeType, maxName) });
  }

  /** Accepts only http(s) URLs, because the agent chooses them. */
  #link(url: string, name: string, mimeType: string | undefined): void {
    const size = url.length + name.length + (mimeType?.length ?? 0);
    if (!this.#takes(size)) this.#tooLarge(size, undefined, name, "text/uri-list");
    else if (/^https?:\/\//i.test(url) && URL.canParse(url)) {
      this.#blocks.push({ type: "resource_link", uri: url, name, ...(mimeType !== undefined && { mimeType }) });
    } else this.#blocks.push({ type: "text", text: `[${name} has a URL that cannot be opened]` });
  }

  /** Sets the text at the end of the result, which a model needs for later calls. */
  note(lines: readonly string[]): void {
    this.#note = lines.filter((each) => each !== "").join("\n");
  }

  result(): CallToolResult {
    const unnamed = this.#missing - maxNamed;
    if (unnamed > 0) this.#blocks.push({ type: "text", text: `[${unnamed} more parts are too large for this answer]` });
    if (this.#note !== "") this.#blocks.push({ type: "text", text: this.#note });
    const [first, ...others] = this.#data;
    const only = others.length === 0 && isObject(first) ? first : { data: this.#data };
    const { length } = new TextEncoder().encode(JSON.stringify(this.#data));
    const isSmall = length <= this.#limits.maxBytes;
    return { content: this.#blocks, ...(this.#data.length > 0 && isSmall && { structuredContent: only }) };
  }
}

function isObject(value: unknown): value is Structured {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
