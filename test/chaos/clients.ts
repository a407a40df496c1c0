import {
  A2AError,
  connect,
  type AgentCard,
  type Client,
  type EventStream,
  type StreamResponse,
  type Task,
} from "@parley/a2a";
import { isTerminal, message, type TaskState } from "@parley/a2a/model";
import { pause } from "./harms.ts";
import { digest, type Entry, type Read } from "./history.ts";
import { conversation, type Order, type Planned, type Way } from "./orders.ts";

/* Clients of the cluster. Concurrent conversations have one task after another, and record what they receive. */

export interface CrowdOptions {
  readonly seed: number;
  /** The number of concurrent conversations. */
  readonly conversations: number;
  /** The cards of the agents, with the balancer's addresses. */
  readonly cards: Readonly<Record<"resumable" | "plain", AgentCard>>;
  /** The origin of the balancer. */
  readonly origin: string;
  /** Returns the URL of a config's webhook. */
  readonly hook: (config: string) => string;
  readonly note: (entry: Entry) => void;
}

/** A task that keeps its state until the test calls `finish()`. */
export interface HeldTask {
  readonly way: HeldWay;
  readonly agent: "/plain" | "/resumable";
  readonly taskId: string;
  state(): Promise<TaskState>;
  /** Provides what the task waits for. Resolves once the task has ended. */
  finish(): Promise<void>;
}

/** The reason to wait: a paused agent (`plain`), the user (`ask`), or an event (`wait`). */
export type HeldWay = Extract<Way, "plain" | "ask" | "wait">;

/** A task as its client knows it. */
interface Story {
  readonly planned: Planned;
  readonly client: Client;
  /** The calls in addition to the streams of the task. */
  readonly acts: Acts;
  taskId: string;
}

type OnEvent = (count: number, event: StreamResponse) => void;

/** Options for calls that are repeated until they succeed. */
const patient = { budget: Infinity, minDelay: 20, maxDelay: 500 } as const;

export class Crowd {
  /** The accepted orders of each task. */
  readonly orders = new Map<string, Order[]>();
  /** The tasks that have not ended, as far as their clients know. */
  readonly #open = new Set<Story>();
  /** The number of tasks that were started, and how many of them have ended as far as their clients know. */
  begun = 0;
  done = 0;
  readonly #options: CrowdOptions;
  readonly #clients = new Map<string, Promise<Client>>();
  readonly #ended = new AbortController();
  #streams = 0;

  constructor(options: CrowdOptions) {
    this.#options = options;
  }

  /** Runs all conversations. After `end()`, resolves once each conversation has finished its last task. */
  async run(): Promise<void> {
    const all = Array.from({ length: this.#options.conversations }, (_, number) => this.#converse(number));
    await Promise.all(all);
  }

  /** Starts a task that keeps its state. */
  async hold(way: HeldWay, number: number): Promise<HeldTask> {
    const what = way === "plain" ? "tell" : way;
    const order = (part: string): Order => ({ what, name: `held-${number}-${part}`, chunks: 2, steps: [], pause: 10 });
    const orders = [order("a"), { ...order("b"), what: "tell" } as const];
    const planned: Planned = { way, orders, binding: "JSONRPC", joinAt: 0, actAt: 0 };
    const story: Story = { planned, client: await this.#client(planned), acts: new Acts(), taskId: "" };
    await this.#sent(story);
    return {
      way,
      agent: way === "plain" ? "/plain" : "/resumable",
      taskId: story.taskId,
      state: async () => (await story.client.getTask(story.taskId)).status.state,
      finish: async () => {
        if (way === "ask") return void (await this.#streamed(story, 1));
        if (way === "wait") await this.#speak(story);
        return this.#untilOver(story);
      },
    };
  }

  /** Stops the conversations from starting further tasks. */
  end(): void {
    this.#ended.abort();
  }

  /** The tasks that have not ended as far as their clients know, with the calls that were made for these tasks. */
  get unfinished(): readonly string[] {
    return Array.from(this.#open, ({ planned, taskId }) => `${planned.orders[0]?.name} (${planned.way}, ${taskId})`);
  }

  async #converse(number: number): Promise<void> {
    for (const planned of conversation(this.#options.seed, number)) {
      if (this.#ended.signal.aborted) return;
      const story: Story = { planned, client: await this.#client(planned), acts: new Acts(), taskId: "" };
      this.begun += 1;
      this.#open.add(story);
      try {
        await this.#begin(story);
        await story.acts.done();
        this.done += 1;
      } catch (thrown) {
        const what = `${planned.way} over ${planned.binding}: ${thrown instanceof A2AError ? thrown.code : ""} ${String(thrown)}`;
        this.#options.note({ type: "trouble", at: Date.now(), what, taskId: story.taskId });
      }
      this.#open.delete(story);
    }
  }

  async #begin(story: Story): Promise<void> {
    const { way } = story.planned;
    if (way === "webhook") return this.#hooked(story);
    if (way === "await") return this.#awaited(story);
    if (way === "ask") return this.#asked(story);
    const { actAt } = story.planned;
    await this.#streamed(story, 0, (count, event) => {
      if (way === "cancel" && count === actAt) story.acts.add(this.#cancel(story));
      if (way === "interrupt" && count === actAt) story.acts.add(this.#interrupt(story));
      if (way === "wait" && says(event, "Waiting for a word")) story.acts.add(this.#speak(story));
    });
  }

  /** Sends a message whose answer is a stream, sometimes with a second reader that joins later. */
  async #streamed(story: Story, at: number, onEvent: OnEvent = () => {}): Promise<StreamResponse | undefined> {
    const { client, planned } = story;
    const sent = this.#message(story, at);
    return this.#read(client.sendStreamingMessage(sent), story, (count, event) => {
      if (count === 1) this.#acked(story, sent.messageId, planned.orders[at]);
      if (count === planned.joinAt && at === 0) story.acts.add(this.#join(story));
      onEvent(count, event);
    });
  }

  async #asked(story: Story): Promise<void> {
    const last = await this.#streamed(story, 0);
    const state = (last?.statusUpdate ?? last?.task)?.status.state;
    if (state === "TASK_STATE_INPUT_REQUIRED") await this.#streamed(story, 1);
  }

  /** Sends a message, and waits for the end of its task. */
  async #awaited(story: Story): Promise<void> {
    const sent = this.#message(story, 0);
    const { task } = await story.client.sendMessage({ message: sent });
    if (task === undefined) throw new Error("The answer is not a task");
    story.taskId = task.id;
    this.#acked(story, sent.messageId, story.planned.orders[0]);
    this.#answered(task);
  }

  /** Starts a task that reports to a webhook, and polls the task until it ends. */
  async #hooked(story: Story): Promise<void> {
    await this.#sent(story, (messageId) => ({ taskPushNotificationConfig: { url: this.#options.hook(messageId) } }));
    return this.#untilOver(story);
  }

  /** Sends the first message of a task without waiting for the task. */
  async #sent(story: Story, more: (messageId: string) => object = () => ({})): Promise<void> {
    const sent = this.#message(story, 0);
    const configuration = { ...more(sent.messageId), returnImmediately: true };
    const { task } = await story.client.sendMessage({ message: sent, configuration });
    if (task === undefined) throw new Error("The answer is not a task");
    story.taskId = task.id;
    this.#acked(story, sent.messageId, story.planned.orders[0]);
  }

  /** Polls a task until it ends. */
  async #untilOver({ client, taskId }: Story): Promise<void> {
    for (;;) {
      const seen = await client.getTask(taskId);
      if (isTerminal(seen.status.state)) return this.#answered(seen);
      await pause(1_000);
    }
  }

  /** Cancels a task, and retries until a node answers. */
  async #cancel({ client, taskId }: Story): Promise<void> {
    for (;;) {
      try {
        const { status } = await client.cancelTask(taskId);
        return this.#options.note({ type: "canceled", at: Date.now(), taskId, state: status.state });
      } catch (thrown) {
        // Either the task had ended, or an earlier attempt of this cancel succeeded.
        if (isCode(thrown, "TaskNotCancelable", "UnsupportedOperation")) return;
        if (!isCode(thrown, "Unavailable", "ConnectionFailed", "ConnectionLost")) throw thrown;
      }
      await pause(200);
    }
  }

  /** Sends a message to a running task. An accepted message gets its own turn. */
  async #interrupt(story: Story): Promise<void> {
    const sent = this.#message(story, 1);
    try {
      await story.client.sendMessage({ message: sent, configuration: { returnImmediately: true } });
      this.#acked(story, sent.messageId, story.planned.orders[1]);
    } catch (thrown) {
      // The task had already ended.
      if (!isCode(thrown, "UnsupportedOperation")) throw thrown;
    }
  }

  /** Sends the task the event for which it waits, until a node has accepted the event. */
  async #speak({ taskId }: Story): Promise<void> {
    for (;;) {
      try {
        const response = await fetch(`${this.#options.origin}/word/${taskId}`, { method: "POST" });
        await response.text();
        if (response.ok) return;
      } catch {
        // The connection was cut.
      }
      await pause(200);
    }
  }

  async #join(story: Story): Promise<void> {
    await this.#read(story.client.subscribeToTask(story.taskId), story, () => {}, { joined: true });
  }

  /** Reads a stream until it ends. Returns the last event. */
  async #read(
    events: EventStream,
    story: Story,
    onEvent: OnEvent,
    more: Pick<Read, "joined"> = {},
  ): Promise<StreamResponse | undefined> {
    const { note } = this.#options;
    const stream = (this.#streams += 1);
    let count = 0;
    let last: StreamResponse | undefined;
    try {
      for await (const event of events) {
        last = event;
        story.taskId ||= event.task?.id ?? event.statusUpdate?.taskId ?? "";
        const { seq } = events;
        const whole = event.task !== undefined;
        note({
          type: "read",
          at: Date.now(),
          stream,
          taskId: story.taskId,
          digest: digest(event.task ?? event),
          whole,
          ...(seq !== undefined && { seq }),
          ...more,
        });
        onEvent((count += 1), event);
      }
      note({ type: "closed", at: Date.now(), stream, taskId: story.taskId });
    } catch (thrown) {
      note({ type: "closed", at: Date.now(), stream, taskId: story.taskId, error: String(thrown) });
      throw thrown;
    }
    return last;
  }

  #message({ planned, taskId }: Story, at: number) {
    const order = planned.orders[at];
    const more = taskId === "" ? {} : { taskId };
    return { ...message(JSON.stringify(order), more), messageId: order?.name ?? "" };
  }

  #acked({ taskId }: Story, messageId: string, order: Order | undefined): void {
    this.#options.note({ type: "acked", at: Date.now(), messageId, taskId });
    if (order !== undefined) this.orders.set(taskId, [...(this.orders.get(taskId) ?? []), order]);
  }

  #answered(task: Task): void {
    this.#options.note({ type: "answered", at: Date.now(), taskId: task.id, digest: digest(task) });
  }

  #client({ way, binding }: Planned): Promise<Client> {
    const name = way === "plain" ? "plain" : "resumable";
    const known = this.#clients.get(`${name} ${binding}`);
    if (known !== undefined) return known;
    // The client must not fall back to an older version just because an interface does not answer for a while.
    const how = { binding, version: "1.0", retry: patient, reconnect: patient };
    const client = connect(this.#options.cards[name], how);
    this.#clients.set(`${name} ${binding}`, client);
    return client;
  }
}

/** Collects calls in addition to a stream. */
class Acts {
  readonly #all: Promise<unknown>[] = [];

  add(act: Promise<unknown>): void {
    act.catch(() => {});
    this.#all.push(act);
  }

  async done(): Promise<void> {
    await Promise.all(this.#all);
  }
}

function says(event: StreamResponse, words: string): boolean {
  const status = event.statusUpdate?.status ?? event.task?.status;
  return status?.message?.parts[0]?.text === words;
}

function isCode(thrown: unknown, ...codes: string[]): boolean {
  return thrown instanceof A2AError && codes.includes(thrown.code);
}
