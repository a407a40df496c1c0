import { EventType, type BaseEvent, type Interrupt, type Message } from "@ag-ui/client";
import { GrowingText } from "@parley/a2a";
import { isInterrupted, type StreamResponse, type TaskStatus } from "@parley/a2a/model";
import { AnswerChunks } from "../shared/chunks.ts";
import { isObject } from "../shared/json.ts";
import { approvalsIn, formIn, type AskedApproval } from "../shared/questions.ts";
import type { A2AChunk, A2AMetadata } from "../shared/types.ts";

/** The inputs of an answer. */
interface RunInit {
  readonly answerId: string;
  readonly maxFileBytes: number;
  /** The known metadata of the answer's task. */
  readonly known: A2AMetadata["a2a"];
  /** Messages that the page already has. Their text is not sent again. */
  readonly messages: readonly Message[];
}

/**
 * Converts the events of one answer to AG-UI events. The text of an artifact or a message becomes one text message; files, data and progress become
 * activities. AG-UI cannot retract text, so if an agent replaces a text after a crash, a snapshot of all messages has the new text.
 */
export class RunEvents {
  readonly #init: RunInit;
  readonly #emit: (event: BaseEvent) => void;
  readonly #chunks: AnswerChunks;
  /** Messages of the answer, by id. */
  readonly #made = new Map<string, Message>();
  readonly #texts = new Map<string, GrowingText>();
  /** Texts that the agent has started since the answer was last reset. */
  readonly #begun = new Set<string>();
  readonly #open = new Set<string>();
  #isReplaced = false;
  #error: string | undefined;

  constructor(init: RunInit, emit: (event: BaseEvent) => void) {
    this.#init = init;
    this.#emit = emit;
    const options = { messageId: init.answerId, maxFileBytes: init.maxFileBytes, approvalsAsText: true };
    this.#chunks = new AnswerChunks(options, (chunk, id) => this.#add(chunk, id));
    this.#chunks.start(init.known);
  }

  /** The known metadata of the answer's task. */
  get metadata(): A2AMetadata["a2a"] {
    return this.#chunks.metadata;
  }

  /** Messages of the answer. */
  get messages(): readonly Message[] {
    return [...this.#made.values()];
  }

  /** The latest status of the task. */
  get status(): TaskStatus | undefined {
    return this.#chunks.status;
  }

  /** Why the agent failed. */
  get error(): string | undefined {
    return this.#error;
  }

  apply(event: StreamResponse): void {
    this.#chunks.apply(event);
    this.#flush();
  }

  finish(): void {
    this.#chunks.finish();
    for (const [id, text] of this.#texts) {
      if (!this.#begun.has(id) || text.end() === undefined) continue;
      if (text.shown === "") this.#made.delete(id);
      else this.#made.set(id, { id, role: "assistant", content: text.shown });
      this.#isReplaced = true;
    }
    this.#flush();
    this.close();
  }

  /** Ends all open texts, even incomplete ones. */
  close(): void {
    for (const id of this.#open) this.#close(id);
  }

  #add(chunk: A2AChunk, id = "file"): void {
    if (chunk.type === "text-delta") return this.#text(this.#idOf(chunk.id), chunk.delta);
    if (chunk.type === "text-end") return this.#close(this.#idOf(chunk.id));
    if (chunk.type === "data-progress") return this.#activity("a2a-progress", "a2a-progress", { ...chunk.data });
    if (chunk.type === "data-artifact") return this.#activity(id, "a2a-data", { ...chunk.data });
    if (chunk.type === "data-file") return this.#activity(id, "a2a-file", { ...chunk.data });
    if (chunk.type === "file") {
      const { url, mediaType } = chunk;
      return this.#activity(id, "a2a-file", { url, mediaType });
    }
    if (chunk.type === "error") this.#error = chunk.errorText;
    if (chunk.type === "reset-step") this.#empty();
  }

  /** Scoped to the task, because a later turn may repeat or continue its artifacts and messages. */
  #idOf(id: string): string {
    return `${this.metadata.taskId ?? this.#init.answerId}/${id}`;
  }

  #text(id: string, delta: string): void {
    const text = this.#texts.get(id) ?? this.#seeded(id);
    this.#texts.set(id, text);
    const piece = text.add(delta, this.#begun.has(id));
    this.#begun.add(id);
    this.#made.set(id, { id, role: "assistant", content: text.shown });
    if (piece?.reset === true) this.#isReplaced = true;
    if (piece === undefined || this.#isReplaced) return;
    if (!this.#open.has(id)) this.#emit({ type: EventType.TEXT_MESSAGE_START, messageId: id, role: "assistant" });
    this.#open.add(id);
    this.#emit({ type: EventType.TEXT_MESSAGE_CONTENT, messageId: id, delta: piece.text });
  }

  /** The text of a message that the page already has, from an earlier turn or a repeated run. */
  #seeded(id: string): GrowingText {
    const text = new GrowingText();
    const shown = this.#init.messages.find((message) => message.id === id)?.content;
    if (typeof shown === "string") text.add(shown, false);
    return text;
  }

  #activity(name: string, activityType: string, content: object): void {
    const messageId = this.#idOf(name);
    this.#made.set(messageId, { id: messageId, role: "activity", activityType, content });
    this.#emit({ type: EventType.ACTIVITY_SNAPSHOT, messageId, activityType, content });
  }

  #close(id: string): void {
    if (this.#open.delete(id)) this.#emit({ type: EventType.TEXT_MESSAGE_END, messageId: id });
  }

  /** Called when the agent starts over. The following chunks of the same event contain the whole answer. */
  #empty(): void {
    this.#isReplaced = true;
    for (const id of this.#begun) {
      this.#texts.set(id, new GrowingText());
      this.#made.delete(id);
    }
    this.#begun.clear();
  }

  #flush(): void {
    if (!this.#isReplaced) return;
    this.#isReplaced = false;
    this.close();
    // Omits activities, because a page keeps its activities if a snapshot has none.
    const made = this.messages.filter(({ role }) => role !== "activity");
    const ids = new Set(this.#texts.keys());
    const before = this.#init.messages.filter(({ id }) => !ids.has(id));
    this.#emit({ type: EventType.MESSAGES_SNAPSHOT, messages: [...before, ...made] });
  }
}

/** The interrupts that a task waits for: one for each call that needs approval, or one for the whole question. */
export function interruptsOf(status: TaskStatus, taskId: string, threadId: string): Interrupt[] {
  if (!isInterrupted(status.state)) return [];
  const parts = status.message?.parts ?? [];
  const id = status.message?.messageId ?? taskId;
  const message = parts.map(({ text = "" }) => text).join("");
  const metadata = { taskId, threadId };
  const approvals = approvalsIn(parts).map(({ approvalId, toolCallId, toolName, input }) => ({
    id: approvalKey(id, approvalId),
    reason: "confirmation",
    message,
    responseSchema: approvalSchema,
    metadata: { ...metadata, approvalId, toolCallId, toolName, input },
  }));
  if (approvals.length > 0) return approvals;
  const form = formIn(parts);
  const reason = status.state === "TASK_STATE_AUTH_REQUIRED" ? "a2a:auth_required" : "input_required";
  return [{ id, reason, message, ...(isObject(form) && { responseSchema: { ...form } }), metadata }];
}

/** The approvals that a task waits for, by the id of their interrupt. */
export function approvalsOf({ message }: TaskStatus): ReadonlyMap<string, AskedApproval> {
  const approvals = approvalsIn(message?.parts ?? []);
  return new Map(approvals.map((each) => [approvalKey(message?.messageId ?? "", each.approvalId), each] as const));
}

const approvalKey = (questionId: string, approvalId: string): string => `${questionId}/${approvalId}`;

const approvalSchema = {
  type: "object",
  properties: { approved: { type: "boolean" }, reason: { type: "string" } },
  required: ["approved"],
};
