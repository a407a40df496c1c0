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
import type { AgentEntry } from "../src/api.ts";

/** What a conversation shows, in order. */
export type Entry = SentEntry | TaskEntry | ReplyEntry | FailedEntry;

/** The user has sent a message. */
export interface SentEntry {
  readonly kind: "sent";
  readonly message: Message;
}

/** A task, as it grows. A later message of the same task continues it with an entry of its own. */
export interface TaskEntry {
  readonly kind: "task";
  readonly task: Task;
  /** Whether its events are followed. */
  readonly running: boolean;
}

/** A direct reply. */
export interface ReplyEntry {
  readonly kind: "reply";
  readonly message: Message;
}

/** A call that failed. */
export interface FailedEntry {
  readonly kind: "failed";
  readonly message: string;
  /** The code of the error, such as `Unauthenticated`. */
  readonly code?: string;
}

const clients = new Map<string, Promise<Client>>();

/** The client of an agent. It calls the agent on the origin of this page: the console's server passes it on, or serves it. */
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
  return connectJsonRpc({ ...card, supportedInterfaces }, { headers: ownHeaders(), fetch: await recordedFetch(id) });
}

/** A conversation with an agent. */
export class Chat {
  readonly agent: AgentEntry;
  readonly entries: Signal<readonly Entry[]> = signal([]);
  /** Whether an answer is awaited. */
  readonly busy: Signal<boolean> = signal(false);
  #conversation: Conversation | undefined;
  #stop: AbortController | undefined;

  constructor(agent: AgentEntry) {
    this.agent = agent;
  }

  get contextId(): string | undefined {
    return this.#conversation?.contextId;
  }

  /** Sends a message, and shows its answer as it comes. `onTaken` is called once the agent has begun to answer. */
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

  /** Answers what a task asks. Where its stream is still open, that stream shows what comes of it. */
  async answer(task: Task, parts: readonly Part[]): Promise<void> {
    if (!this.busy.value) return this.send(parts, () => answered(this.agent, task, parts));
    try {
      const { answerTask } = await import("./tasks.ts");
      await answerTask(this.agent, task, parts);
    } catch (thrown) {
      this.#add(failed(thrown));
    }
  }

  /** Cancels the task that runs. */
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

  /** Replaces the entry at a place, or adds it. Returns its place. */
  #put(at: number | undefined, entry: Entry): number {
    const entries = [...this.entries.value];
    const place = at ?? entries.length;
    entries[place] = entry;
    this.entries.value = entries;
    return place;
  }
}

/** Runs something once in a frame, however often it is requested. A hidden tab has no frames, so a timer takes over there. */
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
