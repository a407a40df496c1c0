import { utf8Length } from "@parley/a2a/internal/base/index";
import {
  toBase64,
  type Artifact,
  type Message,
  type Part,
  type StreamResponse,
  type TaskState,
} from "@parley/a2a/model";
import { toJson } from "./json.ts";
import type { ModelPart } from "./model.ts";

/* Converts the answer of a remote agent to model parts. */

/** The content of a user message as parts. */
export function partsOf(content: string | readonly ModelPart[]): readonly Part[] {
  if (typeof content === "string") return [{ text: content }];
  return content.flatMap((part): Part[] => {
    if (part.type === "text") return [{ text: String(part["text"]) }];
    if (part.type !== "file") return [];
    const { data: given, mediaType, filename } = part;
    const named = {
      mediaType: String(mediaType),
      ...(typeof filename === "string" && { filename }),
    };
    // Specification V4 wraps the data.
    const tagged = typeof given === "object" && given !== null && "type" in given ? given : undefined;
    const data: unknown = tagged === undefined ? given : Reflect.get(tagged, String(tagged.type));
    if (data instanceof URL) return [{ url: data.href, ...named }];
    return [{ raw: data instanceof Uint8Array ? toBase64(data) : String(data), ...named }];
  });
}

const noUsage = {
  inputTokens: { total: undefined, noCache: undefined, cacheRead: undefined, cacheWrite: undefined },
  outputTokens: { total: undefined, text: undefined, reasoning: undefined },
};

const states: Partial<Record<TaskState, string>> = {
  TASK_STATE_FAILED: "failed",
  TASK_STATE_REJECTED: "rejected",
  TASK_STATE_CANCELED: "canceled",
};

/** Maximum size of one answer, which equals the size limit of a Parley task. */
const maxBytes = 32 << 20;

/** Converts the events of a task to model parts: artifacts and messages become text and files, progress becomes reasoning. */
export class AnswerParts {
  taskId: string | undefined;
  state: TaskState | undefined;
  /** All text so far. */
  text = "";
  /** The text of each artifact, and the number of its files that were shown. */
  readonly #shown = new Map<string, { readonly text: string; readonly files: number }>();
  /** Ids of seen messages, because a client that reconnects gets the latest message again. */
  readonly #heard = new Set<string>();
  #count = 0;
  /** The text of the last message: the question, or why the agent failed. */
  said = "";
  #bytes = 0;

  *read({ task, message, statusUpdate, artifactUpdate }: Partial<StreamResponse>): Generator<ModelPart, void, void> {
    this.taskId = task?.id ?? statusUpdate?.taskId ?? artifactUpdate?.taskId ?? this.taskId;
    for (const artifact of task?.artifacts ?? []) yield* this.#artifact(artifact, false);
    if (artifactUpdate !== undefined) yield* this.#artifact(artifactUpdate.artifact, artifactUpdate.append === true);
    if (message !== undefined) yield* this.#message(message, "text");
    const status = statusUpdate?.status ?? task?.status;
    if (status === undefined) return;
    this.state = status.state;
    if (status.message === undefined) return;
    const isProgress = status.state === "TASK_STATE_WORKING" || status.state === "TASK_STATE_SUBMITTED";
    yield* this.#message(status.message, isProgress ? "reasoning" : "text");
  }

  *end(ids: {
    readonly contextId: string | undefined;
    readonly taskId: string | undefined;
  }): Generator<ModelPart, void, void> {
    const ended = this.state === undefined ? undefined : states[this.state];
    if (ended !== undefined)
      return yield { type: "error", error: new Error(`The remote task has ${ended}: ${this.said}`) };
    const providerMetadata = { a2a: toJson({ ...ids, state: this.state }) };
    yield { type: "finish", finishReason: { unified: "stop", raw: this.state }, usage: noUsage, providerMetadata };
  }

  /** If an artifact starts over, shows only its new text, because shown text cannot be retracted. */
  *#artifact({ artifactId, parts }: Artifact, append: boolean): Generator<ModelPart, void, void> {
    const before = this.#shown.get(artifactId) ?? { text: "", files: 0 };
    const text = parts.map(textOf).join("");
    const files = parts.filter(({ raw }) => raw !== undefined);
    const had = append ? before : { text: "", files: 0 };
    this.#shown.set(artifactId, {
      text: had.text + text,
      files: Math.max(before.files, had.files + files.length),
    });
    yield* this.#text(!append && text.startsWith(before.text) ? text.slice(before.text.length) : text, "text");
    yield* this.#files(append ? files : files.slice(before.files));
  }

  *#message({ messageId, parts }: Message, kind: "text" | "reasoning"): Generator<ModelPart, void, void> {
    this.said = parts.map((part) => part.text ?? "").join("");
    if (this.#heard.has(messageId)) return;
    this.#heard.add(messageId);
    if (kind === "reasoning" || !this.#mirrors(this.said)) yield* this.#text(this.said, kind);
    yield* this.#files(parts);
  }

  /** Whether a text repeats the artifacts, which some agents do for clients that do not show artifacts. */
  #mirrors(said: string): boolean {
    const shown = [...this.#shown.values()].map(({ text }) => text);
    return [...shown, shown.join(""), shown.join("\n")].some((text) => text.trim() === said.trim());
  }

  *#files(parts: readonly Part[]): Generator<ModelPart, void, void> {
    for (const part of parts) {
      if (part.raw === undefined) continue;
      this.#add(part.raw);
      yield fileOf(part.raw, part);
    }
  }

  /** Throws if the answer is too large, because an endless answer must not exhaust the memory. */
  #add(text: string): void {
    this.#bytes += utf8Length(text);
    if (this.#bytes > maxBytes) throw new Error(`The remote agent's answer exceeds ${maxBytes} bytes`);
  }

  *#text(delta: string, kind: "text" | "reasoning"): Generator<ModelPart, void, void> {
    if (delta === "") return;
    this.#add(delta);
    if (kind === "text") this.text += delta;
    const id = `${(this.#count += 1)}`;
    yield { type: `${kind}-start`, id };
    yield { type: `${kind}-delta`, id, delta };
    yield { type: `${kind}-end`, id };
  }
}

function textOf({ text, data, url, mediaType = "" }: Part): string {
  if (data !== undefined && !mediaType.startsWith("application/schema+json")) return JSON.stringify(data);
  return text ?? url ?? "";
}

function fileOf(data: string, { mediaType = "application/octet-stream" }: Part): ModelPart {
  return { type: "file", mediaType, data };
}
