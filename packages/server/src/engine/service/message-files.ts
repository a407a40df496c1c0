import type { BlobQuota } from "../../blobs/blobs.ts";
import type { LazyBlobs } from "../../blobs/lazy.ts";
import { A2AError, isTerminal, type Part } from "@parley/a2a/internal/model/index";
import type { TaskHead, TaskKey } from "../../store/index.ts";
import type { EngineSettings } from "../shared/settings.ts";
import type { Admission, Send } from "./admission.ts";
import { wantedGeneration } from "./follow-ups.ts";
import { fileAt } from "../../blobs/ref.ts";

/** The large files of one message, which are stored before the message. */
export class MessageFiles {
  readonly #lazy: LazyBlobs;
  readonly #settings: Pick<EngineSettings, "ids" | "store">;
  #task: TaskKey | undefined;
  /** A quota for each time that the message was accepted. */
  readonly #quotas: BlobQuota[] = [];
  /** Stored files by their base64 or first URL, so that a message that is accepted again gets the same files. */
  readonly #known = new Map<string, Part>();

  constructor(lazy: LazyBlobs, settings: Pick<EngineSettings, "ids" | "store">) {
    this.#lazy = lazy;
    this.#settings = settings;
  }

  /**
   * The message with its large files stored outside. A message stays unchanged if it will be rejected, because its task is terminal, belongs
   * to another owner, or does not match what the caller expects.
   */
  async store(send: Send): Promise<Send> {
    const { owner, request, again } = send;
    const { message } = request;
    const { store, ids } = this.#settings;
    const [incoming] = send.incoming?.values() ?? [];
    const taskId = message.taskId ?? send.newTaskId ?? incoming?.taskId ?? ids.next();
    if (message.taskId !== undefined && isRefused(send, await store.head(owner, taskId))) return send;
    const blobs = await this.#lazy.load();
    const task = (this.#task = { agent: owner.agent, owner: owner.owner, taskId });
    const quota = await blobs.quotaOf(task, "client");
    this.#quotas.push(quota);
    const parts: Part[] = [];
    for (const part of message.parts) {
      parts.push(this.#knownAs(part) ?? (await this.#stored(part, task, quota, send.incoming)));
    }
    const rows = this.#quotas.flatMap((each) => [...each.rows.values()]);
    const stored: Send = {
      ...send,
      kept: [...send.kept, ...rows],
      request: { ...request, message: { ...message, parts } },
      ...(message.taskId === undefined && { newTaskId: taskId }),
    };
    return again === undefined ? stored : { ...stored, again: async () => this.store(await again()) };
  }

  #knownAs(part: Part): Part | undefined {
    const url = this.#known.get(part.raw ?? part.url ?? "")?.url;
    return url === undefined ? undefined : fileAt(url, part);
  }

  async #stored(part: Part, task: TaskKey, quota: BlobQuota, incoming: Send["incoming"]): Promise<Part> {
    const blobs = await this.#lazy.load();
    const file = part.url === undefined ? undefined : incoming?.get(part.url);
    if (file !== undefined) {
      const adopted = await blobs.adopt(task, file, part, quota);
      this.#known.set(part.url ?? "", adopted);
      return adopted;
    }
    const [stored = part] = await blobs.storeParts(task, [part], quota);
    if (stored !== part && part.raw !== undefined) this.#known.set(part.raw, stored);
    return stored;
  }

  /** Admits the message. Then deletes files that no record names: the message was rejected, is a duplicate, or was answered directly. */
  async admit(stored: Send, admit: (stored: Send) => Promise<Admission>): Promise<Admission> {
    try {
      const admission = await admit(stored);
      admission.answer.then(
        () => this.drop(),
        (error: unknown) => this.drop(error),
      );
      return admission;
    } catch (error) {
      this.drop(error);
      throw error;
    }
  }

  /** Deletes files that no row of the task names. After a store error, the record may be stored, so leaves its files to the collector. */
  drop(error?: unknown): void {
    if (error !== undefined && !(error instanceof A2AError && error.code !== "Unavailable")) return;
    // If this fails, the collector deletes the files later.
    this.#drop().catch(() => {});
  }

  async #drop(): Promise<void> {
    const task = this.#task;
    if (task === undefined) return;
    const keys = this.#quotas.flatMap(({ rows }) => [...rows.keys()]);
    const blobs = await this.#lazy.load();
    await blobs.deleteUnnamed(task, keys);
  }
}

function isRefused(send: Send, head: TaskHead | undefined): boolean {
  if (head === undefined || isTerminal(head.state)) return true;
  const { contextId = head.contextId } = send.request.message;
  return contextId !== head.contextId || (wantedGeneration(send) ?? head.generation) !== head.generation;
}
