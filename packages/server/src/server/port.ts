import type { JsonValue } from "@parley/a2a/internal/model/index";
import type { Principal, SignalOptions, UniversalHandler, UniversalRequest } from "@parley/a2a/internal/protocol/index";
import type { Found } from "@parley/a2a/internal/transport/router/router";
import type { ServerHost } from "@parley/a2a/internal/transport/server/binding";
import type { FetchHandler } from "@parley/a2a/internal/transport/server/fetch";
import type { DeleteOwnerOptions, Erasure } from "../engine/index.ts";
import type { AgentMount, HostedService, ServedAgent } from "./options.ts";

/* The results of `createHost()` and `createHandler()`. */

/** Options of `Handler.wake()`. */
export interface WakeOptions {
  /**
   * Maximum time to wait for running turns and webhooks, in milliseconds. Set it to the limit of the platform, because running work stops when
   * the platform ends the call. Default 0.
   */
  readonly wait?: number;
}

/** The result of `Handler.wake()`. */
export interface Wake {
  /**
   * The latest time to call `wake()` again, in milliseconds since the Unix epoch, because a webhook is then due or a lease ends. Absent:
   * nothing waits. Also call it once a day, to delete old tasks.
   */
  readonly next?: number;
}

/** The agents of a host, which can change while it serves. */
export interface Mounts<Mount = HostedService> {
  /** The served agents, with their addresses. */
  readonly agents: readonly ServedAgent[];
  /**
   * Adds all of these agents from the next request on, or none of them if one is invalid.
   *
   * @throws A2AError `InvalidParams` if an address or an id is taken or invalid, or if an agent has an extension that neither the host nor
   * an agent had when the host was created. `Unavailable` after `close`.
   */
  add(mounts: Mount | readonly Mount[]): readonly ServedAgent[];
  /**
   * Replaces the mount with the same id: its card, service or address. Every request reaches either the old or the new one. The old one
   * finishes open calls.
   *
   * @throws A2AError as `add`; also `InvalidParams` for an unknown id.
   */
  replace(mount: Mount): ServedAgent;
  /**
   * Stops serving an agent: the next request to its paths gets 404. Open calls and streams continue. Resolves when they and
   * its turns have ended; immediately for an unknown id. Turns that wait for a person or another agent continue in another process that
   * serves the agent. Stored tasks stay.
   */
  remove(id: string): Promise<void>;
}

/** Agents behind all bindings. `createHost()` creates a host without an engine. */
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
  /** For hosts: whether a URL of `UniversalRequest` is a health check, which any sender may read. */
  isProbe(this: void, url: string): boolean;
  /** The agents, with their addresses. */
  readonly agents: readonly ServedAgent[];
  /**
   * The dependencies of a binding without paths, such as gRPC. `services` has the agents by their labels: path and tenant, such as `weather`
   * and `weather/berlin`. The agent at the root has no label.
   */
  readonly host: ServerHost;
  /** The agents, to add, replace and remove. */
  readonly mounts: Mounts<Mount>;
  /** Makes readiness probes fail, so that load balancers send requests elsewhere. The host still serves everything until `close`. */
  drain(this: void): void;
  /**
   * Stops the host. Running turns and calls of services get `grace` milliseconds to finish. Unfinished resumable tasks continue on the next
   * server with the same store.
   */
  close(options?: { readonly grace?: number }): Promise<void>;
}

/** Agents with the engine that runs them. Created by `createHandler()`. */
export interface Handler extends Host<AgentMount | HostedService> {
  /**
   * Sends an external event to a task: `turn.waitFor(name)` continues with the data. Events that arrive early are kept until the task
   * ends, at most 32 per task. Any process that shares the store may call it. It accepts tasks of every owner, so your code must check
   * the caller.
   *
   * With `waitUntil` it only stores the event: the task continues with the next request, or with `wake()`.
   *
   * @param data - Any JSON, at most 16 KiB. Default `null`.
   * @throws A2AError `TaskNotFound`; `UnsupportedOperation` if the task is terminal; `TooManyRequests` if 32 events wait; `InvalidParams`
   * for an invalid name, id or data; `Unavailable`.
   *
   * @example
   * ```ts
   * const handler = createHandler(agent, { publicUrl: "https://agents.example.com", store: memoryStore() });
   * await handler.signal("0199-task", "approved", { by: "ada" }, { id: "delivery-17" });
   * ```
   */
  signal(this: void, taskId: string, name: string, data?: JsonValue, options?: SignalOptions): Promise<void>;
  /**
   * Deletes all data of a caller, for all agents in the store and in the memory of this process: tasks, conversations, webhooks with their
   * secrets, idempotency keys, the search index, and its name. Open tasks are canceled first, and messages that
   * this process is answering are aborted. Revoke the caller's access first. Your code must check who requests it.
   *
   * @param owner - The caller, or its name as returned by `ownerOf`.
   * @throws A2AError `Unavailable` if the caller keeps creating tasks, or the store fails; data that is already deleted stays deleted.
   * `UnsupportedOperation` if the store has no `upkeep`.
   *
   * @example
   * ```ts
   * const handler = createHandler(agent, { publicUrl: "https://agents.example.com", store: memoryStore() });
   * const { tasks } = await handler.deleteOwner({ subject: "ada" });
   * ```
   */
  deleteOwner(this: void, owner: Principal | string, options?: DeleteOwnerOptions): Promise<Erasure>;
  /**
   * Exports all data of a caller, for all agents in the store, as JSON Lines in chunks of any length: conversations with their direct replies, and
   * tasks with history, artifacts and files. The last line has the type `end`; without it the export is incomplete.
   *
   * @param owner - The caller, or its name as returned by `ownerOf`.
   *
   * @example
   * ```ts
   * const handler = createHandler(agent, { publicUrl: "https://agents.example.com", store: memoryStore() });
   * for await (const piece of handler.exportOwner({ subject: "ada" })) console.log(piece);
   * ```
   */
  exportOwner(this: void, owner: Principal | string): AsyncIterable<string>;
  /**
   * Does all due work: takes over lost runs, wakes waiting tasks, delivers webhooks, deletes old tasks. For a cron trigger or an alarm, on platforms
   * that run code only on request.
   *
   * @throws A2AError `Unavailable` after `close`.
   */
  wake(this: void, options?: WakeOptions): Promise<Wake>;
}
