import { anonymous } from "@parley/server";
import type { StreamResponse, TaskState } from "@parley/a2a/model";
import type { CallContext, OperationName } from "@parley/a2a/protocol";
import { idsOf, isNamed, madeUp, type Got } from "./ids.ts";
import { marks, type World } from "./world.ts";
import type { Act, Call, Name, Ref } from "./program.ts";

/* Runs a program, or the part of one principal, and notes what each call came to in words that do not depend on the run. */

/** What a principal has seen of a world. */
export interface Seen {
  /** The answer of each of its calls, by the place of the call. */
  readonly answers: Readonly<Record<number, unknown>>;
  /** What its webhooks got. */
  readonly deliveries: readonly string[];
}

/** The number of the webhook that a call sets or deletes. */
function hookOf(act: Act): number | undefined {
  if (act.kind === "hook" || act.kind === "deleteHook") return act.hook;
  return act.kind === "send" && act.webhook ? 0 : undefined;
}

const waitsFor: readonly TaskState[] = ["TASK_STATE_SUBMITTED", "TASK_STATE_WORKING", "TASK_STATE_INPUT_REQUIRED"];

/** Runs the calls of some principals. The others are absent: their ids are made up. */
export async function run(world: World, program: readonly Call[], who: readonly Name[]): Promise<Record<Name, Seen>> {
  const runner = new Runner(world, program);
  for (const [at, call] of program.entries()) if (who.includes(call.by)) await runner.call(at, call);
  for (const by of who) await runner.finish(by);
  await runner.settled();
  return { ada: runner.seenBy("ada"), bob: runner.seenBy("bob") };
}

class Runner {
  readonly #world: World;
  readonly #program: readonly Call[];
  readonly #got = new Map<Ref, Got>();
  readonly #answers = new Map<Ref, unknown>();
  /** The ids that each call has used, with the call that each was taken from. */
  readonly #used = new Map<Ref, Map<string, Ref>>();
  readonly #streams: Promise<void>[] = [];

  constructor(world: World, program: readonly Call[]) {
    this.#world = world;
    this.#program = program;
  }

  /** Makes one call, and waits until what it began is at rest. */
  async call(at: number, call: Call): Promise<void> {
    const used = new Map<string, Ref>();
    this.#used.set(at, used);
    const [operation, request, more] = await this.#request(call, used);
    const context: CallContext = { principal: anonymous, version: call.version, extensions: [], ...more };
    const service = this.#world.service(call);
    try {
      if (operation === "SendStreamingMessage" || operation === "SubscribeToTask") {
        const { batches } = await service.stream(operation, request as never, context);
        await this.#follow(at, batches);
      } else {
        const { payload } = await service.call(operation as "GetTask", request as never, context);
        this.#note(at, payload.value);
      }
    } catch (thrown) {
      const { code, message, fields, metadata } = thrown as Record<string, unknown>;
      this.#answers.set(at, { code, message, fields, metadata });
    }
    await this.#atRest(at, call);
  }

  /** Cancels the tasks of a principal that are not terminal, so all of its streams end. */
  async finish(by: Name): Promise<void> {
    const service = this.#world.service({ by, binding: "JSONRPC", version: "1.0" });
    const context = { principal: anonymous, version: "1.0", extensions: [] };
    for (const state of waitsFor) {
      const request = { status: state, pageSize: 100 };
      const { payload } = await service.call("ListTasks", request, context);
      for (const { id } of payload.value.tasks) await service.call("CancelTask", { id }, context).catch(() => {});
    }
  }

  /** Waits for the ends of all streams, and for all deliveries. */
  async settled(): Promise<void> {
    await Promise.all(this.#streams);
    await until(async () => {
      const due = await this.#world.store.dueFeatures({ feature: "push", now: Infinity, limit: 1 });
      return due.length === 0;
    });
  }

  seenBy(by: Name): Seen {
    const answers: Record<number, unknown> = {};
    for (const [at, answer] of this.#answers) {
      if (this.#program[at]?.by === by) answers[at] = JSON.parse(this.#plain(JSON.stringify(answer), at)) as unknown;
    }
    return { answers, deliveries: this.#deliveredTo(by) };
  }

  /**
   * What the webhooks of a principal got, as far as it does not depend on when they were served: a delivery may come twice, and one of
   * 0.3 is the task as it is then, so that only the last one of a task counts. An event that waits when its webhook is set again or
   * deleted is delivered in another way, or not at all: such webhooks are not compared.
   */
  #deliveredTo(by: Name): readonly string[] {
    const all = this.#world.deliveries.filter(({ path }) => path.startsWith(`/${by}/`));
    const other = by === "ada" ? "bob" : "ada";
    if (all.some(({ body }) => body.includes(marks[other])))
      throw new Error(`A webhook of ${by} got words of ${other}`);
    const own = all.filter(({ path }) => this.#timesSet(by, path) <= 1);
    const told = own.map(({ path, body }): [string, string] => {
      const { kind, id } = JSON.parse(body) as { readonly kind?: string; readonly id?: string };
      return [kind === "task" ? `${path} ${id}` : `${path} ${body}`, `${path} ${this.#plain(body)}`];
    });
    return [...new Map(told).values()].sort();
  }

  /** How many calls of a principal set or delete the webhook with this path. */
  #timesSet(by: Name, path: string): number {
    const own = this.#program.filter((call) => call.by === by).map(({ act }) => hookOf(act));
    return own.filter((hook) => hook !== undefined && path === `/${by}/${hook}`).length;
  }

  /** The events of a stream, until it ends. Resolves when its first ones are here. */
  async #follow(at: Ref, batches: AsyncIterable<readonly { readonly payload: { readonly value: StreamResponse } }[]>) {
    const events: StreamResponse[] = [];
    this.#answers.set(at, events);
    await new Promise<void>((resolve) => {
      const read = async (): Promise<void> => {
        try {
          for await (const items of batches) {
            for (const { payload } of items) events.push(payload.value);
            if (!this.#got.has(at)) this.#got.set(at, idsOf(events[0]));
            resolve();
          }
        } catch (thrown) {
          this.#answers.set(at, { events, code: (thrown as { readonly code: unknown }).code });
        }
        resolve();
      };
      this.#streams.push(read());
    });
  }

  #note(at: Ref, value: unknown): void {
    this.#answers.set(at, value);
    this.#got.set(at, idsOf(value));
  }

  /** Waits until the agent has done what a send told it to do. */
  async #atRest(at: Ref, { act }: Call): Promise<void> {
    const { taskId } = this.#got.get(at) ?? {};
    if (act.kind !== "send" || taskId === undefined) return;
    await until(async () => {
      const task = (await this.#world.store.load({ agent: "/" }, taskId, { artifacts: true }))?.task;
      if (task === undefined || !isBusy(task.status.state)) return true;
      // A turn that waits has shown what it knows: each turn makes one artifact.
      const head = await this.#world.store.head({ agent: "/" }, taskId);
      return head?.run !== undefined && (task.artifacts?.length ?? 0) >= head.run.turn;
    });
  }

  async #request({ by, act }: Call, used: Map<string, Ref>): Promise<readonly [OperationName, object, object?]> {
    switch (act.kind) {
      case "send":
        return [act.stream ? "SendStreamingMessage" : "SendMessage", await this.#message(by, act, used)];
      case "get":
        return ["GetTask", { id: this.#task(act.task, used) }];
      case "cancel":
        return ["CancelTask", { id: this.#task(act.task, used) }];
      case "subscribe":
        return ["SubscribeToTask", { id: this.#task(act.task, used) }, await this.#after(by, act)];
      case "list": {
        const contextId = this.#contextOf(act, used);
        const token = act.token === undefined ? {} : { pageToken: this.#token(act.token) };
        return ["ListTasks", { pageSize: act.pageSize, ...(contextId !== undefined && { contextId }), ...token }];
      }
      case "hook": {
        const url = this.#world.hook(by, act.hook);
        return ["CreateTaskPushNotificationConfig", { taskId: this.#task(act.task, used), id: `h${act.hook}`, url }];
      }
      case "getHook":
        return ["GetTaskPushNotificationConfig", { taskId: this.#task(act.task, used), id: `h${act.hook}` }];
      case "deleteHook":
        return ["DeleteTaskPushNotificationConfig", { taskId: this.#task(act.task, used), id: `h${act.hook}` }];
      case "listHooks": {
        const token = act.token === undefined ? {} : { pageToken: this.#token(act.token) };
        return ["ListTaskPushNotificationConfigs", { taskId: this.#task(act.task, used), pageSize: 1, ...token }];
      }
      case "card":
        return ["GetExtendedAgentCard", {}];
    }
  }

  /** Where a stream begins. One that began after the last event of a task that is not over would have no first event. */
  async #after(by: Name, { task, after }: Extract<Act, { readonly kind: "subscribe" | "get" | "cancel" }>) {
    if (after === undefined) return {};
    const state = await this.#stateOf(by, task);
    return { after: state !== undefined && waitsFor.includes(state) ? Math.min(after, 1) : after };
  }

  async #message(by: Name, act: Extract<Act, { readonly kind: "send" }>, used: Map<string, Ref>): Promise<object> {
    const contextId = this.#contextOf(act, used);
    return {
      message: {
        messageId: `m${act.messageId}`,
        role: "ROLE_USER",
        parts: [{ text: act.marked ? `${act.what} ${marks[by]}` : act.what }],
        ...(act.task !== undefined && { taskId: this.#task(act.task, used) }),
        ...(contextId !== undefined && { contextId }),
        ...(act.references !== undefined && { referenceTaskIds: [this.#task(act.references, used)] }),
      },
      configuration: {
        // A turn that waits would never answer, and neither would one after it.
        returnImmediately: act.what === "wait" || (act.task !== undefined && (await this.#isWaiting(by, act.task))),
        ...(act.webhook && { taskPushNotificationConfig: { id: "h0", url: this.#world.hook(by, 0) } }),
      },
    };
  }

  #contextOf(
    { context, named }: { readonly context?: Ref; readonly named?: number },
    used: Map<string, Ref>,
  ): string | undefined {
    if (named !== undefined) return `c${named}`;
    if (context === undefined) return undefined;
    const of = this.#before(context);
    const { contextId } = this.#got.get(of) ?? {};
    const id = contextId === undefined || isNamed(contextId) ? madeUp("c", of) : contextId;
    used.set(id, of);
    return id;
  }

  #task(ref: Ref, used: Map<string, Ref>): string {
    const of = this.#before(ref);
    const id = this.#got.get(of)?.taskId ?? madeUp("7", of);
    used.set(id, of);
    return id;
  }

  /** Whether a task of this principal has a turn that waits. */
  async #isWaiting(by: Name, ref: Ref): Promise<boolean> {
    const state = await this.#stateOf(by, ref);
    return state !== undefined && isBusy(state);
  }

  /** The state of a task of this principal. */
  async #stateOf(by: Name, ref: Ref): Promise<TaskState | undefined> {
    const of = this.#before(ref);
    const { taskId } = this.#got.get(of) ?? {};
    if (taskId === undefined || this.#program[of]?.by !== by) return undefined;
    return (await this.#world.store.load({ agent: "/" }, taskId, { artifacts: false }))?.task.status.state;
  }

  #token(ref: Ref): string {
    const of = this.#before(ref);
    return this.#got.get(of)?.token ?? `1700000000000.${of}.0123456789abcdef`;
  }

  /** The call that a reference means: a call of the program, by any caller. */
  #before(ref: Ref): Ref {
    return ref % this.#program.length;
  }

  /**
   * Without what differs from run to run: ids become names of the calls that got them. An id that the call `at` has used becomes the
   * name of the call that it was taken from: two calls of the other principal may have got one id, and are two where it is absent.
   */
  #plain(text: string, at?: Ref): string {
    let plain = text;
    for (const [id, of] of this.#used.get(at ?? -1) ?? []) plain = plain.replaceAll(id, `<${of}>`);
    for (let of = 0; of < this.#program.length; of += 1) {
      plain = plain.replaceAll(madeUp("7", of), `<${of}>`).replaceAll(madeUp("c", of), `<${of}>`);
    }
    const named = new Set<string>();
    for (const [of, { taskId, contextId }] of [...this.#got].sort(([one], [other]) => one - other)) {
      for (const id of [taskId, contextId]) {
        if (id === undefined || named.has(id) || isNamed(id)) continue;
        named.add(id);
        plain = plain.replaceAll(id, `<${of}>`);
      }
    }
    return plain
      .replaceAll(/\d{4}-\d\d-\d\dT[\d:.]+Z/g, "<time>")
      .replaceAll(/[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}/g, "<id>")
      .replaceAll(/"nextPageToken":"[^"]+"/g, '"nextPageToken":"<token>"')
      .replaceAll(/http:\/\/127\.0\.0\.1:\d+/g, "<receiver>");
  }
}

function isBusy(state: TaskState): boolean {
  return state === "TASK_STATE_SUBMITTED" || state === "TASK_STATE_WORKING";
}

/** Waits until a condition holds. The test's own timeout ends it. */
async function until(holds: () => Promise<boolean>): Promise<void> {
  while (!(await holds())) await new Promise((resolve) => setTimeout(resolve, 5));
}
