import { signal, type Signal } from "@preact/signals";
import {
  A2AError,
  connectJsonRpc,
  TaskView,
  type Client,
  type Conversation,
  type Message,
  type Part,
  type Task,
} from "@parley/a2a";
import { answered, withoutCredentials } from "./decisions.ts";
import { ownHeaders, recordedFetch, session } from "./server.ts";
import { recorder } from "./wire.ts";
import type { AgentEntry } from "../src/api.ts";

/** An entry of a conversation. */
export type Entry = SentEntry | TaskEntry | ReplyEntry | FailedEntry;

/** A message from the user. */
export interface SentEntry {
  readonly kind: "sent";
  readonly message: Message;
}

/** A task, updated while it runs. A later message to the same task starts another entry. */
export interface TaskEntry {
  readonly kind: "task";
  readonly task: Task;
  /** Whether the page follows the events of the task. */
  readonly running: boolean;
}

/** A reply without a task. */
export interface ReplyEntry {
  readonly kind: "reply";
  readonly message: Message;
}

/** A call that failed. */
export interface FailedEntry {
  readonly kind: "failed";
  readonly message: string;
  /** The error code, such as `Unauthenticated`. */
  readonly code?: string;
}

const clients = new Map<string, Promise<Client>>();

/** The client of an agent. Calls the origin of this page: the console's server forwards the call, or serves the agent itself. */
export function clientOf(agent: AgentEntry): Promise<Client> {
  const known = clients.get(agent.id);
  if (known !== undefined) return known;
  const opened = openClient(agent);
  clients.set(agent.id, opened);
  opened.catch(() => clients.delete(agent.id));
  return opened;
}

async function openClient({ id, path, card }: AgentEntry): Promise<Client> {
  const { href } = new URL(path, location.origin);
  if (session.value?.mode !== "server") return connectJsonRpc(href, { headers: ownHeaders() });
  const own = card.supportedInterfaces.filter(({ protocolBinding }) => protocolBinding === "JSONRPC");
  const supportedInterfaces = own.map((one) => ({ ...one, url: href }));
  return connectJsonRpc(
    { ...card, supportedInterfaces },
    { headers: ownHeaders(), fetch: await recordedFetch(id, recorder) },
  );
}

/** A conversation with an agent. */
export class Chat {
  readonly agent: AgentEntry;
  readonly entries: Signal<readonly Entry[]> = signal([]);
  /** Whether the conversation waits for an answer. */
  readonly busy: Signal<boolean> = signal(false);
  #conversation: Conversation | undefined;
  #stop: AbortController | undefined;

  constructor(agent: AgentEntry) {
    this.agent = agent;
  }

  get contextId(): string | undefined {
    return this.#conversation?.contextId;
  }

  /** Sends a message and streams its answer. Calls `onTaken` when the agent starts to answer. */
  async send(parts: readonly Part[], onTaken: () => void = () => {}): Promise<void> {
    this.busy.value = true;
    try {
      const client = await clientOf(this.agent);
      this.#conversation ??= client.conversation();
      const message: Message = { messageId: crypto.randomUUID(), role: "ROLE_USER", parts: [...parts] };
      this.#add({ kind: "sent", message: { ...message, parts: [...withoutCredentials(parts)] } });
      this.#stop = new AbortController();
      await this.#follow(this.#conversation.stream({ message }, { signal: this.#stop.signal }), onTaken);
    } catch (thrown) {
      if (this.#stop?.signal.aborted !== true) this.#add(failed(thrown));
    } finally {
      this.busy.value = false;
    }
  }

  async #follow(events: ReturnType<Conversation["stream"]>, onTaken: () => void): Promise<void> {
    const view = new TaskView();
    let at: number | undefined;
    let isTaken = false;
    const show = (running: boolean): void => {
      const { task, message } = view;
      if (task !== undefined) at = this.#put(at, { kind: "task", task, running });
      else if (message !== undefined && !running) this.#add({ kind: "reply", message });
    };
    const frame = new Frame(() => show(true));
    try {
      for await (const event of events) {
        if (!isTaken) onTaken();
        isTaken = true;
        view.apply(event);
        frame.request();
      }
    } finally {
      frame.cancel();
      show(false);
    }
  }

  /** Answers the question of a task. If its stream is still open, that stream shows the result. */
  async answer(task: Task, parts: readonly Part[]): Promise<void> {
    if (!this.busy.value) return this.send(parts, () => answered(this.agent, task, parts));
    try {
      const { answerTask } = await import("./tasks.ts");
      await answerTask(this.agent, task, parts);
    } catch (thrown) {
      this.#add(failed(thrown));
    }
  }

  /** Cancels the running task. */
  async cancel(): Promise<void> {
    const taskId = this.#conversation?.taskId;
    if (taskId === undefined) return this.#stop?.abort();
    try {
      await (await clientOf(this.agent)).cancelTask(taskId);
    } catch (thrown) {
      this.#add(failed(thrown));
    }
  }

  #add(entry: Entry): void {
    this.entries.value = [...this.entries.value, entry];
  }

  /** Replaces the entry at an index, or appends it. Returns the index. */
  #put(at: number | undefined, entry: Entry): number {
    const entries = [...this.entries.value];
    const place = at ?? entries.length;
    entries[place] = entry;
    this.entries.value = entries;
    return place;
  }
}

/** Calls `run` at most once per frame. A hidden tab has no frames, so a timer calls it instead. */
class Frame {
  readonly #run: () => void;
  #cancel: (() => void) | undefined;

  constructor(run: () => void) {
    this.#run = run;
  }

  request(): void {
    if (this.#cancel !== undefined) return;
    const run = (): void => {
      this.#cancel = undefined;
      this.#run();
    };
    if (document.hidden) {
      const timer = setTimeout(run, 200);
      this.#cancel = () => clearTimeout(timer);
    } else {
      const frame = requestAnimationFrame(run);
      this.#cancel = () => cancelAnimationFrame(frame);
    }
  }

  cancel(): void {
    this.#cancel?.();
    this.#cancel = undefined;
  }
}

function failed(thrown: unknown): FailedEntry {
  const message = thrown instanceof Error ? thrown.message : String(thrown);
  return { kind: "failed", message, ...(thrown instanceof A2AError && { code: thrown.code }) };
}
