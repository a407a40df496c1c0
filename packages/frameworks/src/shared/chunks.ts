import { defined } from "@parley/a2a/internal/base/defined";
import { GrowingText } from "@parley/a2a";
import {
  isInterrupted,
  isTerminal,
  type Artifact,
  type Part,
  type StreamResponse,
  type TaskStatus,
} from "@parley/a2a/model";
import { dataUrlOf, FileParts, safeMediaType, safeUrl, type OpenFile } from "./files.ts";
import { approvalsIn, formIn } from "./questions.ts";
import type { A2AChunk, A2AMetadata } from "./types.ts";

/** The part of an artifact that the user has seen. */
interface Shown {
  readonly text: GrowingText;
  /** Length of the text that earlier answers contain. */
  from: number;
  readonly name: string | undefined;
  /** Bytes of its files that have arrived. */
  files: FileParts;
  /** Whether its text part was started. */
  open: boolean;
  /** Number of parts other than text. */
  others: number;
}

/** The inputs of an answer. */
interface AnswerInit {
  /** Id of the message of the answer. The id is the same when the answer is read again. */
  readonly messageId: string;
  readonly maxFileBytes: number;
  /** Whether the events cover the whole task. Earlier turns, which ended with a question, belong to other messages. */
  readonly isReplay?: boolean;
  /** Whether a question for approvals is shown as text. Default: as tool calls. */
  readonly approvalsAsText?: boolean;
}

/**
 * Converts the events of one answer to chunks of the AI SDK's UI message stream. The text of an artifact is one text part; everything else becomes
 * file and data parts. If an agent replaces a text after a crash, `reset-step` empties the message (ai 7), and the whole message is sent again.
 */
export class AnswerChunks {
  readonly #init: AnswerInit;
  readonly #emit: (chunk: A2AChunk, id?: string) => void;
  readonly #artifacts = new Map<string, Shown>();
  /** Chunks of everything except artifact texts, by part. */
  readonly #kept = new Map<string, readonly A2AChunk[]>();
  /** The chunks that earlier answers contain. */
  readonly #before = new Map<string, readonly A2AChunk[]>();
  #metadata: A2AMetadata["a2a"] = {};
  /** The task of the first event. */
  #taskId: string | undefined;
  #lastStatus: TaskStatus | undefined;

  /**
   * @param emit - Called with each chunk. If the chunk has no id itself, `id` identifies the part that the chunk belongs to.
   * @param before - The previous answer, if it ended with a question of the same task. Its content is omitted, because the first event has the whole task.
   */
  constructor(init: AnswerInit, emit: (chunk: A2AChunk, id?: string) => void, before?: AnswerChunks) {
    this.#init = init;
    this.#emit = emit;
    if (before === undefined) return;
    this.#taskId = before.#taskId;
    for (const [id, { name, text, others }] of before.#artifacts) {
      const shown = this.#unseen(name);
      shown.text.add(text.shown, false);
      this.#artifacts.set(id, Object.assign(shown, { from: text.shown.length, others }));
    }
    this.#before = new Map([...before.#before, ...before.#kept]);
  }

  /** The known metadata of the answer's task. */
  get metadata(): A2AMetadata["a2a"] {
    return this.#metadata;
  }

  /** The latest status of the task. */
  get status(): TaskStatus | undefined {
    return this.#lastStatus;
  }

  /** Begins the message. */
  start(metadata: A2AMetadata["a2a"]): void {
    this.#metadata = metadata;
    this.#emit({ type: "start", messageId: this.#init.messageId, messageMetadata: { a2a: metadata } });
    this.#emit({ type: "start-step" });
  }

  /** Ignores events of another task. */
  apply({ task, message, artifactUpdate, statusUpdate }: StreamResponse): void {
    const update = artifactUpdate ?? statusUpdate;
    if (update !== undefined && !this.#isOwn(update)) return;
    if (this.#init.isReplay === true && this.#metadata.state === "TASK_STATE_INPUT_REQUIRED") this.#restart();
    if (task !== undefined) {
      if (this.#taskId !== undefined && this.#taskId !== task.id) this.#forget();
      this.#taskId = task.id;
      this.#note(task.id, task.contextId);
      for (const artifact of task.artifacts ?? []) this.#artifact(artifact, false, false);
      this.#status(task.status);
    }
    if (artifactUpdate !== undefined) {
      const { artifact, append = false, lastChunk = false } = artifactUpdate;
      this.#artifact(artifact, append, lastChunk);
    }
    if (statusUpdate !== undefined) this.#status(statusUpdate.status);
    if (message !== undefined) {
      this.#note(message.taskId, message.contextId);
      this.#say(message.messageId, message.parts);
      this.#end();
    }
  }

  /** Ends the message. */
  finish(): void {
    for (const [id, shown] of this.#artifacts) {
      if (shown.open) this.#emit({ type: "text-end", id });
    }
    this.#emit({ type: "finish-step" });
    this.#emit({ type: "finish", finishReason: "stop", messageMetadata: { a2a: this.#metadata } });
  }

  /** Takes the task from the first update, because some agents do not send the task first. */
  #isOwn({ taskId, contextId }: { readonly taskId: string; readonly contextId: string }): boolean {
    if (this.#taskId === undefined) this.#note(taskId, contextId === "" ? undefined : contextId);
    this.#taskId ??= taskId;
    return this.#taskId === taskId;
  }

  #note(taskId: string | undefined, contextId: string | undefined): void {
    const known = this.#metadata;
    if (known.taskId === taskId && known.contextId === contextId) return;
    this.#metadata = { ...known, ...defined({ contextId, taskId }) };
    // The next message continues the task even if the page is reloaded before this one ends.
    this.#emit({ type: "message-metadata", messageMetadata: { a2a: this.#metadata } });
  }

  #artifact({ artifactId, name, parts }: Artifact, append: boolean, isLast: boolean): void {
    const known = this.#artifacts.get(artifactId);
    const shown = known ?? this.#unseen(name);
    this.#artifacts.set(artifactId, shown);
    if (!append) {
      shown.others = 0;
      shown.files = new FileParts(this.#init.maxFileBytes);
    }
    const piece = shown.text.add(textOf(parts), append);
    if (piece?.reset === true) {
      shown.from = 0;
      this.#again();
    } else if (piece !== undefined) this.#text(artifactId, shown, piece.text);
    for (const part of parts) {
      if (part.raw !== undefined) this.#file(artifactId, shown, shown.files.add(part));
      else if (part.text === undefined) this.#other(nextId(artifactId, shown), part, artifactId, shown.name);
    }
    if (isLast) this.#file(artifactId, shown, shown.files.end());
  }

  #unseen(name: string | undefined): Shown {
    const files = new FileParts(this.#init.maxFileBytes);
    return { text: new GrowingText(), from: 0, name, files, open: false, others: 0 };
  }

  #text(id: string, shown: Shown, delta: string): void {
    if (delta === "") return;
    if (!shown.open) this.#emit({ type: "text-start", id });
    shown.open = true;
    this.#emit({ type: "text-delta", id, delta });
  }

  #file(artifactId: string, shown: Shown, received: OpenFile | undefined): void {
    if (received === undefined) return;
    const { filename, mediaType, bytes } = received;
    const id = nextId(artifactId, shown);
    const url = dataUrlOf(received);
    if (url !== undefined) return this.#keep(id, [{ type: "file", url, mediaType }]);
    const data = defined({ artifactId, filename, mediaType, bytes });
    this.#keep(id, [{ type: "data-file", id, data }]);
  }

  #other(id: string, part: Part, artifactId?: string, name?: string): void {
    if (part.url !== undefined) {
      const url = safeUrl(part.url);
      if (url === undefined) return;
      return this.#keep(id, [{ type: "file", url, mediaType: safeMediaType(part.mediaType) }]);
    }
    if (part.data === undefined) return;
    this.#keep(id, [{ type: "data-artifact", id, data: defined({ artifactId, name, data: part.data }) }]);
  }

  /** Sends non-text parts. A repeated part, such as after a crash, is sent only if it differs. */
  #keep(id: string, chunks: readonly A2AChunk[]): void {
    const known = this.#kept.get(id) ?? this.#before.get(id);
    if (known !== undefined && JSON.stringify(known) === JSON.stringify(chunks)) return;
    const isReplaced = this.#kept.has(id);
    this.#kept.set(id, chunks);
    if (isReplaced) return this.#again();
    for (const chunk of chunks) this.#emit(chunk, id);
  }

  /** Empties the message, because the following events belong to the next turn. */
  #restart(): void {
    this.#forget();
    this.#emit({ type: "reset-step" });
  }

  #forget(): void {
    this.#artifacts.clear();
    this.#kept.clear();
    this.#before.clear();
  }

  /** Empties the message, and sends the whole message again. */
  #again(): void {
    this.#emit({ type: "reset-step" });
    for (const [id, shown] of this.#artifacts) {
      shown.open = false;
      this.#text(id, shown, shown.text.shown.slice(shown.from));
    }
    for (const [id, chunks] of this.#kept) for (const chunk of chunks) this.#emit(chunk, id);
  }

  #status(status: TaskStatus): void {
    const { state, message } = status;
    this.#lastStatus = status;
    this.#metadata = { ...this.#metadata, state };
    const text = textOf(message?.parts);
    if (!isTerminal(state) && !isInterrupted(state)) {
      if (text !== "") this.#emit({ type: "data-progress", id: "progress", data: { text } });
      return;
    }
    const failed = state === "TASK_STATE_FAILED" || state === "TASK_STATE_REJECTED";
    if (message !== undefined && !failed) this.#say(message.messageId, message.parts);
    this.#end();
    if (failed) this.#emit({ type: "error", errorText: text || "The agent failed without a reason" });
    if (state === "TASK_STATE_CANCELED") this.#emit({ type: "abort", reason: text || "The task was canceled" });
  }

  /** Shows a message from the agent: a reply, a question, or a final message. */
  #say(messageId: string, parts: readonly Part[]): void {
    // An artifact may have the same id.
    const id = `message:${messageId}`;
    const approvals = this.#init.approvalsAsText === true ? [] : approvalsIn(parts);
    for (const { approvalId, toolCallId, toolName, input, digest } of approvals) {
      this.#keep(`${id}/${approvalId}`, [
        { type: "tool-input-available", toolCallId, toolName, input, dynamic: true },
        { type: "tool-approval-request", approvalId, toolCallId },
        { type: "data-approval", id: approvalId, data: defined({ approvalId, digest }) },
      ]);
    }
    // The page's library shows the approval as a tool call. The text and the form are for clients that cannot show approvals.
    if (approvals.length > 0) return;
    const text = textOf(parts);
    if (text !== "" && !this.#mirrors(text)) {
      this.#keep(id, [
        { type: "text-start", id },
        { type: "text-delta", id, delta: text },
        { type: "text-end", id },
      ]);
    }
    const schema = formIn(parts);
    if (schema !== undefined) this.#keep(`${id}/form`, [{ type: "data-form", id, data: { schema } }]);
    const shown = this.#unseen(undefined);
    for (const part of parts) {
      if (part.raw !== undefined) this.#file(id, shown, shown.files.add(part));
      else if (part.text === undefined && part.data !== schema && approvalsIn([part]).length === 0)
        this.#other(nextId(id, shown), part);
    }
    this.#file(id, shown, shown.files.end());
  }

  /** Whether a text repeats the artifacts, which some agents do for clients that do not show artifacts. */
  #mirrors(text: string): boolean {
    const shown = [...this.#artifacts.values()].map((each) => each.text.shown);
    return [...shown, shown.join(""), shown.join("\n")].some((each) => each.trim() === text.trim());
  }

  #end(): void {
    let isShorter = false;
    for (const [id, shown] of this.#artifacts) {
      this.#file(id, shown, shown.files.end());
      isShorter = shown.text.end() !== undefined || isShorter;
    }
    if (isShorter) this.#again();
  }
}

const textOf = (parts: readonly Part[] = []): string => parts.map(({ text = "" }) => text).join("");

function nextId(artifactId: string, shown: Shown): string {
  shown.others += 1;
  return `${artifactId}/${shown.others}`;
}
