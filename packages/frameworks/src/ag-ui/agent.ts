import {
  AbstractAgent,
  EventType,
  type AgentConfig,
  type AgentSubscriber,
  type BaseEvent,
  type RunAgentInput,
  type RunAgentParameters,
  type RunAgentResult,
} from "@ag-ui/client";
import type { Client, ConnectOptions } from "@parley/a2a";
import { A2AError, type Task } from "@parley/a2a/model";
import { Observable } from "rxjs";
import { Connection } from "../shared/connection.ts";
import { defaultFileBytes } from "../shared/files.ts";
import { checkPeer } from "../shared/peer.ts";
import { answerId, isRunning } from "../shared/turns.ts";
import { isDismissed, lastSaid, messagesOf, toSend, type Thread } from "./messages.ts";
import { Run } from "./run.ts";

/** Options of an `A2AAgent`, in addition to the options of every AG-UI agent. */
export interface A2AAgentConfig extends AgentConfig {
  /** The agent: its URL, or a client. The first run connects to the URL. */
  readonly agent: string | Client;
  /** Options of `connect()`, for a URL. */
  readonly connect?: ConnectOptions;
  /** What `abortRun()` does: `"cancel"` cancels the task; `"leave"` only stops reading, and the task continues. Default: `"cancel"`. */
  readonly onStop?: "cancel" | "leave";
  /** Maximum size of a file that an activity embeds as a `data:` URL, in bytes. Default: 8 MiB. */
  readonly maxFileBytes?: number;
}

/** Maximum number of tasks that `connectAgent()` reads for a thread, newest first. */
const maxTasks = 100;

/**
 * Lets an AG-UI front end, such as CopilotKit, talk to an A2A agent. The thread id is the `contextId`. The run id is the `messageId`, so a
 * repeated run joins the task of the first run. A question from the agent is an interrupt: `resume`, or the user's next message, answers it.
 *
 * `connectAgent()` reads a thread from the agent, and continues an answer in progress, such as after a page reload.
 *
 * @throws Error for a version of `@ag-ui/client` below 0.0.59, or 2 and above.
 *
 * @example
 * ```ts
 * const agent = new A2AAgent({ agent: "https://agents.example.com/travel", threadId: "trip-7" });
 * agent.addMessage({ id: crypto.randomUUID(), role: "user", content: "A trip to Basel" });
 * const { newMessages } = await agent.runAgent();
 * ```
 */
export class A2AAgent extends AbstractAgent {
  readonly #config: A2AAgentConfig;
  #connection: Connection;
  /** Threads by id. Clones share this map. */
  #threads = new Map<string, Thread>();
  readonly #runs = new Set<Run>();

  /** Does not connect before the first run. */
  constructor(config: A2AAgentConfig) {
    super(config);
    checkPeer({ adapter: "ag-ui", name: "@ag-ui/client", min: "0.0.59", below: 2 }, clientVersion(this));
    this.#config = config;
    this.#connection = new Connection(config.agent, config.connect);
  }

  /** Sends the user's last message, or the answers to interrupts, and streams the agent's answer. */
  run(input: RunAgentInput): Observable<BaseEvent> {
    return this.#observe(input, async (run) => {
      const client = await this.#connection.client();
      const thread = await this.#threadOf(client, input);
      if (run.isOver) return;
      const { task } = thread;
      const { messages } = input;
      if (task !== undefined && isDismissed(input, task)) {
        run.begin({ client, answerId: answerId(input.runId), known: { taskId: task.id }, messages });
        return run.apply({ task: await client.cancelTask(task.id) });
      }
      const message = toSend(input, thread);
      this.#threads.set(input.threadId, { ...thread, userMessageId: lastSaid(input)?.id ?? "" });
      const { messageId, contextId, taskId } = message;
      const known = { ...(contextId !== undefined && { contextId }), ...(taskId !== undefined && { taskId }) };
      run.begin({ client, answerId: answerId(messageId), known, messages });
      await run.read(client.sendStreamingMessage({ message }, { signal: run.signal }));
    });
  }

  /** Reads the thread from the agent, and the answer in progress. If the agent lists no tasks, there is nothing to read. */
  protected override connect(input: RunAgentInput): Observable<BaseEvent> {
    return this.#observe(input, async (run) => {
      const client = await this.#connection.client();
      const tasks = await this.#tasksOf(client, input.threadId, maxTasks, run.signal);
      const messages = messagesOf(tasks, this.#maxFileBytes);
      const task = tasks.at(-1);
      if (task === undefined) return;
      run.emit({ type: EventType.MESSAGES_SNAPSHOT, messages });
      const asked = task.history?.findLast(({ role }) => role === "ROLE_USER");
      const { id: taskId, contextId } = task;
      const known = { taskId, ...(contextId !== undefined && { contextId }) };
      run.begin({ client, answerId: answerId(asked?.messageId ?? taskId), known, messages });
      // If the task waits or has ended, the snapshot already has the whole task.
      if (!isRunning(task)) return run.note(task);
      try {
        await run.read(client.subscribeToTask(taskId, { after: 0, signal: run.signal }));
      } catch (error) {
        if (!isUnsupported(error)) throw error;
        // The task ended after the thread was read.
        run.apply({ task: await client.getTask(taskId) });
      }
    });
  }

  /** Clears the interrupts first, because the agent sends the open interrupts again. */
  override connectAgent(parameters?: RunAgentParameters, subscriber?: AgentSubscriber): Promise<RunAgentResult> {
    this.pendingInterrupts = [];
    return super.connectAgent(parameters, subscriber);
  }

  /** Ends the runs. */
  override abortRun(): void {
    for (const run of this.#runs) run.stop(this.#config.onStop ?? "cancel");
  }

  /** An agent with the same messages, which shares the connection. */
  override clone(): A2AAgent {
    const cloned = new A2AAgent(this.#config);
    cloned.#connection = this.#connection;
    cloned.#threads = this.#threads;
    const base: unknown = super.clone();
    return Object.assign(cloned, base);
  }

  /** If the front end has no form for an interrupt, the user's message answers it. */
  protected override prepareRunAgentInput(parameters: RunAgentParameters = {}): RunAgentInput {
    this.pendingInterrupts = this.pendingInterrupts.filter(({ metadata }) => metadata?.["threadId"] === this.threadId);
    const input = super.prepareRunAgentInput(parameters);
    if (input.resume !== undefined || lastSaid(input) === undefined || this.pendingInterrupts.length === 0)
      return input;
    return { ...input, resume: this.pendingInterrupts.map(({ id }) => ({ interruptId: id, status: "resolved" })) };
  }

  get #maxFileBytes(): number {
    return this.#config.maxFileBytes ?? defaultFileBytes;
  }

  #observe(input: RunAgentInput, start: (run: Run) => Promise<void>): Observable<BaseEvent> {
    return new Observable((subscriber) => {
      const { threadId } = input;
      const run = new Run(input, this.#maxFileBytes, {
        next: (event) => {
          // The last event may start the next run.
          if (isLast(event)) this.#threads.set(threadId, { ...this.#threads.get(threadId), ...run.thread });
          subscriber.next(event);
        },
        complete: () => subscriber.complete(),
      });
      this.#runs.add(run);
      void run.complete(start).finally(() => this.#runs.delete(run));
      return () => run.leave();
    });
  }

  /** After a reload, a page has the messages of a thread, but not its task. */
  async #threadOf(client: Client, input: RunAgentInput): Promise<Thread> {
    const known = this.#threads.get(input.threadId);
    const isNew = input.resume === undefined && !input.messages.some(({ role }) => role === "assistant");
    if (known !== undefined || isNew) return known ?? {};
    const [task] = await this.#tasksOf(client, input.threadId, 1);
    return task === undefined ? {} : { task };
  }

  /** The newest tasks of a thread, oldest first. Empty if the agent does not support listing. */
  async #tasksOf(client: Client, threadId: string, limit: number, signal?: AbortSignal): Promise<readonly Task[]> {
    const contextId = this.#threads.get(threadId)?.contextId ?? threadId;
    const tasks: Task[] = [];
    try {
      const request = { contextId, includeArtifacts: true, pageSize: Math.min(limit, 20) };
      for await (const task of client.tasks(request, { signal })) {
        tasks.unshift(task);
        if (tasks.length >= limit) break;
      }
    } catch (error) {
      if (!isUnsupported(error)) throw error;
    }
    return tasks;
  }
}

/** The version of the client library, which the library sets on every agent. */
function clientVersion(agent: {
  readonly maxProtocolVersion?: string;
  readonly maxVersion?: string;
}): string | undefined {
  return agent.maxProtocolVersion ?? agent.maxVersion;
}

function isLast({ type }: BaseEvent): boolean {
  return type === EventType.RUN_FINISHED || type === EventType.RUN_ERROR;
}

/** Whether the agent lacks the operation. */
function isUnsupported(error: unknown): boolean {
  return error instanceof A2AError && (error.code === "UnsupportedOperation" || error.code === "MethodNotFound");
}
