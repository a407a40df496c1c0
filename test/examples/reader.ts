import type { Client, SendInput } from "@parley/a2a";
import type { Artifact, Message, Part, StreamResponse } from "@parley/a2a/model";

/** A client's view of the answer to one message, without ids and times, which differ between runs. */
export interface Told {
  /** The state of the task, or `message` for a direct reply. */
  readonly state: string;
  /** The agent's messages in order: progress, questions, the reply. */
  readonly said: readonly string[];
  /** The content of the artifacts, by name. */
  readonly artifacts: Readonly<Record<string, string>>;
}

/** Sends messages to an agent as one conversation, and checks that each stream is complete. */
export class Reader {
  readonly #client: Client;
  readonly #onEvent: () => void | Promise<void>;
  #taskId: string | undefined;

  /** Calls `onEvent` after each event, and waits for the result before it reads the next event. */
  constructor(client: Client, onEvent: () => void | Promise<void> = () => undefined) {
    this.#client = client;
    this.#onEvent = onEvent;
  }

  /** Sends a message to the waiting task, or starts a task. */
  async send(parts: readonly Part[] | string): Promise<Told> {
    const message = { parts: partsOf(parts), ...(this.#taskId !== undefined && { taskId: this.#taskId }) };
    return this.#follow({ message });
  }

  /** Starts a task, and cancels it after some events, or when it asks a question. Returns the task's state. */
  async cancel(parts: readonly Part[] | string, events = Infinity): Promise<string | undefined> {
    let seen = 0;
    let taskId = "";
    for await (const event of this.#client.sendStreamingMessage({ message: { parts: partsOf(parts) } })) {
      taskId ||= event.task?.id ?? event.statusUpdate?.taskId ?? "";
      seen += 1;
      if (seen === events) await this.#client.cancelTask(taskId);
    }
    if (seen < events) await this.#client.cancelTask(taskId);
    return (await this.#client.getTask(taskId)).status.state;
  }

  async #follow(input: SendInput): Promise<Told> {
    const seen = new Seen();
    for await (const event of this.#client.sendStreamingMessage(input)) {
      seen.add(event);
      await this.#onEvent();
    }
    if (seen.reply !== undefined) return { state: "message", said: [seen.reply], artifacts: {} };
    const task = await this.#client.getTask(seen.taskId);
    const artifacts = Object.fromEntries((task.artifacts ?? []).map((one) => [one.name ?? "", contentOf(one)]));
    // The streamed events must add up to the stored task, so no event was lost or repeated.
    for (const [id, { name, content }] of seen.artifacts) {
      if (artifacts[name] === content) continue;
      throw new Error(`The stream had another artifact ${id} than the task:\n${content}\n${artifacts[name]}`);
    }
    this.#taskId = task.status.state === "TASK_STATE_INPUT_REQUIRED" ? task.id : undefined;
    return { state: task.status.state, said: seen.said, artifacts };
  }
}

function partsOf(parts: readonly Part[] | string): readonly Part[] {
  return typeof parts === "string" ? [{ text: parts }] : parts;
}

class Seen {
  taskId = "";
  reply: string | undefined;
  readonly said: string[] = [];
  readonly artifacts = new Map<string, { readonly name: string; content: string }>();

  add({ message, task, statusUpdate, artifactUpdate }: StreamResponse): void {
    if (message !== undefined) this.reply = textOf(message);
    this.taskId ||= task?.id ?? statusUpdate?.taskId ?? artifactUpdate?.taskId ?? "";
    const told = statusUpdate?.status.message;
    if (told !== undefined) this.said.push(textOf(told));
    if (artifactUpdate === undefined) return;
    const { artifact, append } = artifactUpdate;
    const known = this.artifacts.get(artifact.artifactId);
    if (append !== true) {
      if (known !== undefined) throw new Error(`The artifact ${artifact.artifactId} began twice`);
      this.artifacts.set(artifact.artifactId, { name: artifact.name ?? "", content: contentOf(artifact) });
    } else if (known === undefined) throw new Error(`The beginning of the artifact ${artifact.artifactId} is missing`);
    else known.content += contentOf(artifact);
  }
}

function textOf({ parts }: Message): string {
  return contentOf({ parts });
}

function contentOf({ parts }: Pick<Artifact, "parts">): string {
  return parts.map(one).join("");
}

function one({ text, data, raw, url }: Part): string {
  if (text !== undefined) return text;
  if (raw !== undefined) return Buffer.from(raw, "base64").toString("latin1");
  return url ?? `\n${JSON.stringify(sorted(data))}`;
}

/** Sorts the members of objects by name, because the official SDK stores data in a different order. */
function sorted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sorted);
  if (typeof value !== "object" || value === null) return value;
  const entries = Object.entries(value).map(([name, member]) => [name, sorted(member)] as const);
  return Object.fromEntries(entries.toSorted(([a], [b]) => (a < b ? -1 : 1)));
}
