import { silentLogger, A2AError, type AgentCard, type Message, type Task } from "@parley/server";
import { connect, type Client, type EventStream, type StreamResponse } from "@parley/a2a";
import { message } from "@parley/a2a/model";

/* Callers that continue after every crash, and record what they received. */

export type AgentName = "resumable" | "plain";
export type Binding = "JSONRPC" | "HTTP+JSON";

/** The events of one stream. */
export interface Seen {
  readonly events: { readonly seq: number | undefined; readonly event: StreamResponse }[];
  readonly story: Story;
}

/** A task as its caller sees it. */
export interface Story {
  readonly agent: AgentName;
  /** The accepted messages, in order. */
  readonly texts: string[];
  /** Known after the first response. */
  taskId: string;
  /** The response to a send that waited for the end. */
  answer?: Task;
}

export interface LoadOptions {
  readonly cards: Readonly<Record<AgentName, AgentCard>>;
  readonly random: () => number;
  /** Called for each event that a caller gets. */
  readonly onEvent: () => void;
}

const bindings: readonly Binding[] = ["JSONRPC", "HTTP+JSON"];

export class Load {
  readonly stories: Story[] = [];
  readonly streams: Seen[] = [];
  /** The errors of sends that lost their connection, and that the client must not repeat. */
  readonly failures: unknown[] = [];
  /** How many times a stream was resumed. */
  resumed = 0;
  readonly #options: LoadOptions;
  readonly #watching: Promise<void>[] = [];
  #ending = false;
  #made = 0;

  constructor(options: LoadOptions) {
    this.#options = options;
  }

  /** Calls both agents in all ways until `end`, and then waits until all tasks end. Rejects with any error that callers should not get. */
  async run(): Promise<void> {
    const callers = (["resumable", "plain"] as const).flatMap((agent) =>
      bindings.flatMap((binding) => [
        () => this.#streamed(agent, binding),
        () => (this.#chance(0.5) ? this.#asked(agent, binding) : this.#awaited(agent, binding)),
      ]),
    );
    await Promise.all(
      [...callers, () => this.#interrupted()].map(async (call) => {
        while (!this.#ending) await call();
      }),
    );
    await Promise.all(this.#watching);
  }

  end(): void {
    this.#ending = true;
  }

  /** A task that is streamed to its end, sometimes with a second reader that joins later. */
  async #streamed(agent: AgentName, binding: Binding): Promise<void> {
    const story = this.#begin(agent);
    const client = await this.#client(agent, binding);
    const joinAt = this.#chance(0.4) ? this.#upTo(60) : 0;
    await this.#read(client.sendStreamingMessage(this.#plan(story, "plan")), story, (count) => {
      if (count === joinAt) this.#watching.push(this.#watch(story, binding));
    });
  }

  async #watch(story: Story, binding: Binding): Promise<void> {
    const client = await this.#client(story.agent, binding);
    await this.#read(client.subscribeToTask(story.taskId), story);
  }

  /** A task that asks for input before it ends. Each message has its own stream. */
  async #asked(agent: AgentName, binding: Binding): Promise<void> {
    const story = this.#begin(agent);
    const client = await this.#client(agent, binding);
    const last = await this.#read(client.sendStreamingMessage(this.#plan(story, "ask")), story);
    // If the stream was resumed after the question, the question is in the task.
    const { status } = last?.statusUpdate ?? last?.task ?? {};
    if (status?.state !== "TASK_STATE_INPUT_REQUIRED") return;
    const answer = { ...this.#plan(story, "plan"), taskId: story.taskId };
    try {
      await this.#read(client.sendStreamingMessage(answer), story);
    } catch (error) {
      // It asked, and its process died before the turn ended.
      if (agent === "resumable" || !isOver(error)) throw error;
      story.texts.pop();
    }
  }

  /** A send that waits for the end. If it fails and the client may not repeat it, the message is sent once more. */
  async #awaited(agent: AgentName, binding: Binding): Promise<void> {
    const story = this.#begin(agent);
    const request = this.#plan(story, "plan");
    if (this.#chance(0.5)) {
      const client = await this.#client(agent, binding, false);
      const task = await client.sendMessage(request).catch((error: unknown) => void this.failures.push(error));
      if (typeof task === "object") return this.#answered(story, task.task);
    }
    const client = await this.#client(agent, binding);
    this.#answered(story, (await client.sendMessage(request)).task);
  }

  /** A message to a running task. Once it is accepted, it gets its turn. */
  async #interrupted(): Promise<void> {
    const story = this.#begin("resumable");
    const client = await this.#client("resumable", "JSONRPC");
    const at = this.#upTo(20);
    let sent: Promise<void> | undefined;
    await this.#read(client.sendStreamingMessage(this.#plan(story, "plan")), story, (count) => {
      if (count === at) sent = this.#interrupt(client, story);
    });
    await sent;
  }

  async #interrupt(client: Client, story: Story): Promise<void> {
    const note = `note ${(this.#made += 1)}`;
    const configuration = { returnImmediately: true };
    try {
      await client.sendMessage({ message: message(note, { taskId: story.taskId }), configuration });
      story.texts.push(note);
    } catch (error) {
      // The task had already ended.
      if (!isOver(error)) throw error;
    }
  }

  /** Reads a stream to its end. Returns its last event. */
  async #read(
    stream: EventStream,
    story: Story,
    onCount: (count: number) => void = () => {},
  ): Promise<StreamResponse | undefined> {
    const seen: Seen = { events: [], story };
    for await (const event of stream) {
      if (seen.events.length === 0) this.streams.push(seen);
      seen.events.push({ seq: stream.seq, event });
      story.taskId ||= event.task?.id ?? "";
      this.#options.onEvent();
      onCount(seen.events.length);
    }
    if (seen.events.length === 0) throw new Error("A stream had no events");
    return seen.events.at(-1)?.event;
  }

  #begin(agent: AgentName): Story {
    const story: Story = { agent, texts: [], taskId: "" };
    this.stories.push(story);
    return story;
  }

  #plan(story: Story, what: "plan" | "ask"): Message {
    const words = `${what} ${(this.#made += 1)} ${10 + this.#upTo(70)}`;
    story.texts.push(words);
    return message(words);
  }

  #answered(story: Story, task: Task | undefined): void {
    if (task === undefined) throw new Error("The answer is not a task");
    story.taskId = task.id;
    story.answer = task;
  }

  /** A client that retries without a limit, or one that does not retry. */
  #client(agent: AgentName, binding: Binding, patient = true): Promise<Client> {
    const policy = patient ? ({ budget: Infinity, minDelay: 10, maxDelay: 100 } as const) : false;
    const info = (message: string): void => {
      if (message === "Stream broke; reconnecting") this.resumed += 1;
    };
    const logger = { ...silentLogger, info };
    return connect(this.#options.cards[agent], { binding, retry: policy, reconnect: policy, logger });
  }

  #chance(of: number): boolean {
    return this.#options.random() < of;
  }

  #upTo(most: number): number {
    return 1 + Math.floor(this.#options.random() * most);
  }
}

function isOver(error: unknown): boolean {
  return error instanceof A2AError && error.code === "UnsupportedOperation";
}
