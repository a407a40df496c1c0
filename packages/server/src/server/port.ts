import type { JsonValue } from "@parley/a2a/internal/model/index";
import type { Principal, SignalOptions, UniversalHandler, UniversalRequest } from "@parley/a2a/internal/protocol/index";
import type { Found } from "@parley/a2a/internal/transport/router/router";
import type { ServerHost } from "@parley/a2a/internal/transport/server/binding";
import type { FetchHandler } from "@parley/a2a/internal/transport/server/fetch";
import type { DeleteOwnerOptions, Erasure } from "../engine/index.ts";
import type { AgentMount, HostedService, ServedAgent } from "./options.ts";

/* What `createHost()` and `createHandler()` return. */

/** Options of `Handler.wake()`. */
export interface WakeOptions {
  /**
   * How long to wait at most for turns and webhooks that are under way, in milliseconds. Set it to what the platform allows, since what
   * is under way stops where the platform ends the call. Default 0.
   */
  readonly wait?: number;
}

/** What `Handler.wake()` found. */
export interface Wake {
  /**
   * When to call `wake()` again at the latest, in milliseconds since the Unix epoch: a webhook is due then, or a lease ends. Absent:
   * nothing waits. Also call it once a day, to delete what is too old.
   */
  readonly next?: number;
}

/** The agents of a host, which can change while it serves. */
export interface Mounts<Mount = HostedService> {
  /** Those that are served now, with their addresses. */
  readonly agents: readonly ServedAgent[];
  /**
   * Serves more agents: all of them from the next request on, or none.
   *
   * @throws A2AError `InvalidParams` where an address or an id is taken or not valid, and where an agent has an extension that none had when the
   * host was made. `Unavailable` after `close`.
   */
  add(mounts: Mount | readonly Mount[]): readonly ServedAgent[];
  /**
   * Serves another mount in place of the one with the same id: another card, service or address. Every request reaches one of the two. Calls that are
   * open are answered by the former one.
   *
   * @throws A2AError as `add`; `InvalidParams` also where nothing has this id.
   */
  replace(mount: Mount): ServedAgent;
  /**
   * Stops serving an agent: the next request to its paths gets 404. Open calls and streams continue. Resolves when they and
   * its turns have ended; at once for an unknown id. Turns that only wait, for a person or another agent, continue in another process that
   * serves the agent. Stored tasks stay.
   */
  remove(id: string): Promise<void>;
}

/** Agents that are ready to be served. `createHost()` makes one without an engine. */
export interface Host<Mount = HostedService> {
  /** For hosts: answers a request. */
  readonly handle: UniversalHandler;
  /** For runtimes and frameworks of the Fetch API: Bun, Deno, Workers, Hono. */
  readonly fetch: FetchHandler;
  /** Whether the handler serves something at a URL of `UniversalRequest`, by any HTTP method. If not, a framework may serve it. */
  answers(this: void, url: string): boolean;
  /**
   * For hosts: the endpoint at a URL, for a binding that takes the connection over. The host has to admit the request itself: see
   * `host.admit`.
   */
  find(this: void, url: string): Found | undefined;
  /** For hosts: whether a request belongs to a binding that recognizes its requests by their headers at any path, as gRPC does. */
  claims(this: void, request: UniversalRequest): boolean;
  /** For hosts: whether a URL of `UniversalRequest` is one of `health`, which is answered to any sender. */
  isProbe(this: void, url: string): boolean;
  /** The agents, with their addresses. */
  readonly agents: readonly ServedAgent[];
  /**
   * What a binding without paths gets, such as gRPC. `services` has the agents by their labels: path and tenant, such as `weather` and
   * `weather/berlin`. The agent at the root has no label.
   */
  readonly host: ServerHost;
  /** The agents, to add, replace and remove. */
  readonly mounts: Mounts<Mount>;
  /** Makes probes of readiness fail from now on, so that load balancers send requests elsewhere. Everything is still served until `close`. */
  drain(this: void): void;
  /**
   * Stops the host. Running turns, and calls of services, get `grace` milliseconds. Unfinished resumable tasks continue on the next server of
   * the store.
   */
  close(options?: { readonly grace?: number }): Promise<void>;
}

/** Agents with the engine that runs them. `createHandler()` makes one. */
export interface Handler extends Host<AgentMount | HostedService> {
  /**
   * Tells a task of something that has happened outside: `turn.waitFor(name)` continues with the data. An event that comes before the agent
   * waits for it is kept, up to 32 of a task, until the task is over. It may be called in any process that shares the store. It is for the
   * operator's own code, which has checked who calls: it takes tasks of every owner.
   *
   * With `waitUntil` the event is stored, and nothing runs yet: the task continues with the next request, or with `wake()`.
   *
   * @param data - Any JSON, at most 16 KiB. Default `null`.
   * @throws A2AError `TaskNotFound`; `UnsupportedOperation` where the task is over; `TooManyRequests` where 32 events of it wait; `InvalidParams`
   * for a name, an id or data that is not valid; `Unavailable`.
   *
   * @example
   * ```ts
   * const handler = createHandler(agent, { publicUrl: "https://agents.example.com", store: memoryStore() });
   * await handler.signal("0199-task", "approved", { by: "ada" }, { id: "delivery-17" });
   * ```
   */
  signal(this: void, taskId: string, name: string, data?: JsonValue, options?: SignalOptions): Promise<void>;
  /**
   * Deletes all that a caller has, in the store with whatever agent and in the memory of this process: tasks, conversations, webhooks with their
   * secrets, idempotency keys, the index of full text search, and its name. Tasks that are not over are canceled first, and messages that
   * this process is answering are given up. Withdraw its access before. It is for the operator's own code.
   *
   * @param owner - The caller, or the name that `ownerOf` gives to it.
   * @throws A2AError `Unavailable` where it continues creating tasks, or the store cannot work; what is deleted then stays deleted.
   * `UnsupportedOperation` where the store has no `upkeep`.
   *
   * @example
   * ```ts
   * const handler = createHandler(agent, { publicUrl: "https://agents.example.com", store: memoryStore() });
   * const { tasks } = await handler.deleteOwner({ subject: "ada" });
   * ```
   */
  deleteOwner(this: void, owner: Principal | string, options?: DeleteOwnerOptions): Promise<Erasure>;
  /**
   * All that a caller has in the store with whatever agent, as JSON Lines in pieces of any length: conversations with their direct replies, and
   * tasks with history, artifacts and files. The last line has the type `end`; without it the export is not complete.
   *
   * @param owner - The caller, or the name that `ownerOf` gives to it.
   *
   * @example
   * ```ts
   * const handler = createHandler(agent, { publicUrl: "https://agents.example.com", store: memoryStore() });
   * for await (const piece of handler.exportOwner({ subject: "ada" })) console.log(piece);
   * ```
   */
  exportOwner(this: void, owner: Principal | string): AsyncIterable<string>;
  /**
   * Does what is due: takes over lost runs, wakes tasks that wait, delivers webhooks, deletes what is too old. For a cron trigger or an alarm, on platforms
   * that run code only when something calls.
   *
   * @throws A2AError `Unavailable` after `close`.
   */
  wake(this: void, options?: WakeOptions): Promise<Wake>;
}
