import { deferred, type Resolver } from "../../base/index.ts";
import { sizeOf } from "../bytes.ts";
import type { FirstResult } from "../run/index.ts";
import { inContext, type Accepted, type Admission, type Send, type SendRooms } from "./admission.ts";
import type { Retries } from "./retries.ts";

/** Takes in messages that belong to no task yet (A2A 1.0 §3.4.1): the agent answers each, or makes a task of it. */
export class FirstMessages {
  readonly #rooms: SendRooms;
  readonly #retries: Retries;

  constructor(rooms: SendRooms, retries: Retries) {
    this.#rooms = rooms;
    this.#retries = retries;
  }

  /** No promise where there is room for it: every message comes through here. */
  take(send: Send): Admission | Promise<Admission> {
    const { budget } = this.#rooms;
    const { owner } = send.owner;
    const bytes = sizeOf(send.request.message);
    return budget.tryTake(owner, bytes) ? this.#start(send, bytes) : this.#startLater(send, bytes);
  }

  async #startLater(send: Send, bytes: number): Promise<Admission> {
    await this.#rooms.budget.take(send.owner.owner, bytes);
    return this.#start(send, bytes);
  }

  /** `bytes`: what of the budget is taken for the message. */
  #start(send: Send, bytes: number): Admission {
    const { hosted, owner, call, principal, attempt } = send;
    const { message, configuration } = send.request;
    const { settings, runs } = this.#rooms;
    const { ids, clock, directReplyWithin } = settings;
    const contextId = message.contextId ?? ids.next();
    const task = { agent: owner.agent, owner: owner.owner, taskId: ids.next() };
    const answer = deferred<Accepted>();
    let takeBack: (() => void) | undefined;
    const result: Resolver<FirstResult> = {
      resolve: (first) => {
        takeBack?.();
        this.#retries.end(attempt, first.kind === "message" ? first.message : undefined);
        if (first.kind === "message") answer.resolve(first);
        else if (first.kind === "duplicate") answer.resolve(this.#retries.join(owner, first.once, attempt));
        else answer.resolve({ kind: "task", task, contextId, input: 1, log: first.log, made: true });
      },
      reject: (error) => {
        takeBack?.();
        this.#retries.end(attempt);
        // Whoever asked may be gone; then nobody hears that it failed.
        answer.promise.catch(() => {});
        answer.reject(error);
      },
    };
    const run = runs.start({
      hosted,
      key: task,
      bytes,
      contextId,
      isNewContext: message.contextId === undefined,
      message: message.contextId === undefined ? inContext(message, contextId) : message,
      call,
      principal,
      result,
      once: attempt?.once,
    });
    if (configuration?.returnImmediately === true && hosted.agent.mayReplyDirectly !== false) {
      takeBack = clock.after(directReplyWithin, () => run.phase.makeTask());
    }
    return { answer: answer.promise };
  }
}
