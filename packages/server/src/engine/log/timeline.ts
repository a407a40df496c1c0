import { elementsOf, insideOf, membersOf, unescaped } from "@parley/a2a/internal/base/json-text";
import { countsInGeneration, type LogRecord } from "@parley/a2a/internal/model/index";
import type { Span, TaskTimeline } from "@parley/a2a/internal/protocol/index";
import type { Room, Store, TaskHead } from "../../store/index.ts";

/** Records of one page, and the most bytes of it. */
const page = { limit: 256, bytes: 256 << 10 };

/**
 * The timeline of a task (1.1 draft, §3.2.8), and the generations in which its artifacts began and ended, as its log has them up to the
 * head. `undefined` where the log no longer begins at its first record, or where the entries would take more than `bytes`: a part of a timeline
 * would be read as the whole.
 *
 * @param room - Asked before a large page is read.
 */
export async function readTimeline(
  store: Pick<Store, "read">,
  { task, seq, firstSeq }: Pick<TaskHead, "task" | "seq" | "firstSeq">,
  bytes: number,
  room?: Room,
): Promise<Omit<TaskTimeline, "payload"> | undefined> {
  if (firstSeq > 1) return undefined;
  const timeline = new Timeline(bytes);
  for (let after = 0; after < seq;) {
    const found = await store.read(task, task.taskId, { ...page, after, ...(room !== undefined && { room }) });
    const records = found?.records.filter((record) => record.seq <= seq) ?? [];
    const last = records.at(-1);
    if (last === undefined || !records.every((record) => timeline.add(record))) return undefined;
    after = last.seq;
  }
  return timeline;
}

/** Collects the entries as JSON text. */
class Timeline implements Omit<TaskTimeline, "payload"> {
  readonly entries: string[] = [];
  readonly artifacts: Map<string, Span> = new Map<string, Span>();
  #left: number;
  #generation = 0;

  constructor(bytes: number) {
    this.#left = bytes;
  }

  /** Returns whether there was room. */
  add(record: LogRecord): boolean {
    if (countsInGeneration(record.kind)) this.#generation++;
    switch (record.kind) {
      case "task":
        return elementsOf(membersOf(record.json).get("history") ?? "[]").every((text) => this.#enter("message", text));
      case "message":
        return this.#enter("message", record.json);
      case "statusUpdate":
        return this.#enter("status", membersOf(record.json).get("status") ?? "{}");
      case "artifactUpdate":
        return this.#mark(membersOf(record.json));
    }
  }

  #enter(member: "message" | "status", json: string): boolean {
    this.entries.push(`{"${member}":${json}}`);
    return (this.#left -= 2 * json.length) >= 0;
  }

  #mark(event: ReadonlyMap<string, string>): boolean {
    const id = unescaped(insideOf(membersOf(event.get("artifact") ?? "{}").get("artifactId") ?? '""'));
    const start = this.artifacts.get(id)?.start ?? this.#generation;
    const over = event.get("lastChunk") === "true";
    this.artifacts.set(id, over ? { start, end: this.#generation } : { start });
    return (this.#left -= 2 * id.length + 64) >= 0;
  }
}
