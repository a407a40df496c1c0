import type { Clock } from "@parley/a2a/internal/base/index";
import { A2AError } from "@parley/a2a/internal/model/index";
import type { HostPrincipal, RequestFacts, UniversalHandler } from "@parley/a2a/internal/protocol/index";
import { toFetch, type Attend, type FetchFacts } from "@parley/a2a/internal/transport/server/fetch";
import type { Engine } from "../engine/index.ts";
import type { WaitUntil } from "./options.ts";
import type { Handler, Wake, WakeOptions } from "./port.ts";
import { pause } from "@parley/a2a/internal/base/async";

/* A handler in frameworks of the Fetch API, and on platforms that run code only for requests, alarms and cron triggers. */

/** Options of `fetchMount`. `Platform`: the argument that is passed in addition to the request. */
export interface FetchMountOptions<Platform extends readonly unknown[]> {
  /**
   * Returns the caller of a request, for `hostUser()` of `@parley/a2a/auth`, or a falsy value if no user is logged in. Called at most once per
   * request, when the principal is read.
   */
  readonly principal?: (request: Request, ...platform: Platform) => HostPrincipal | Promise<HostPrincipal>;
  /** Further facts of the runtime or the framework about the client, such as its address. */
  readonly facts?: (request: Request, ...platform: Platform) => Omit<RequestFacts, "principal">;
}

/**
 * Serves agents in a Fetch API framework that authenticates its users, such as Hono or Next.js. Returns `handler.fetch` with a typed second
 * argument for the framework's context.
 *
 * @example
 * ```ts
 * interface Context {
 *   get(name: "user"): { id: string } | undefined;
 * }
 * const answer = fetchMount(createHandler(agent, { store: myStore(), publicUrl: "https://agents.example.com" }), {
 *   principal(_request, context: Context) {
 *     const user = context.get("user");
 *     return user && { subject: user.id };
 *   },
 * });
 * // app.all("/*", (context) => answer(context.req.raw, context));
 * ```
 */
export function fetchMount<Platform extends readonly unknown[] = readonly []>(
  { handle, host }: Pick<Handler, "handle" | "host">,
  { principal, facts }: FetchMountOptions<Platform> = {},
): (this: void, request: Request, ...platform: Platform) => Promise<Response> {
  const tell = (request: Request, platform: Platform): RequestFacts => {
    let found: { readonly principal: HostPrincipal | Promise<HostPrincipal> } | undefined;
    const told: RequestFacts = { ...facts?.(request, ...platform) };
    return Object.defineProperty(told, "principal", {
      get: () => (found ??= { principal: principal?.(request, ...platform) }).principal,
    });
  };
  const factsOf: FetchFacts = (request, ...platform) => tell(request, platform as unknown as Platform);
  const answer = toFetch(handle, factsOf, host.logger, host.attend);
  return (request, ...platform) => answer(request, ...platform);
}

/** Maximum pause between two checks whether work is still running, in milliseconds. */
const longestPause = 1_000;

type OwnEngine = Pick<Engine, "start" | "round" | "isBusy" | "nextDue" | "isClosed">;

/** Keeps work running after the answer to its request, with the periodic work. */
export function attendant({
  engine,
  clock,
  waitUntil,
}: {
  readonly engine: OwnEngine;
  readonly clock: Clock;
  readonly waitUntil: WaitUntil;
}): Attend {
  return (ended, platform) => {
    let isOpen = true;
    const work = attend(engine, clock, () => isOpen);
    void ended.then(() => (isOpen = false));
    waitUntil(work, ...platform);
  };
}

/** Wraps a handler so that, without background work, the first request starts the engine. */
export function startedBy(onDemand: Attend | undefined, engine: OwnEngine, handle: UniversalHandler): UniversalHandler {
  if (onDemand === undefined) return handle;
  return (request) => {
    engine.start(false);
    return handle(request);
  };
}

async function attend(engine: OwnEngine, clock: Clock, isOpen: () => boolean): Promise<void> {
  for (let ms = 1; ; ms = Math.min(2 * ms, longestPause)) {
    await pause(clock, ms);
    if (engine.isClosed() || !(isOpen() || engine.isBusy())) return;
    await engine.round();
  }
}

/** `byItself`: the engine does its periodic work in the background. */
export async function wakeEngine(
  engine: OwnEngine,
  clock: Clock,
  { wait = 0 }: WakeOptions = {},
  byItself: boolean,
): Promise<Wake> {
  if (engine.isClosed()) throw new A2AError("Unavailable", "The server is stopping");
  engine.start(byItself);
  await engine.round(true);
  const end = clock.elapsed() + wait;
  for (let ms = 1; engine.isBusy() && !engine.isClosed(); ms = Math.min(2 * ms, longestPause)) {
    const left = end - clock.elapsed();
    if (left <= 0) break;
    // The timer must belong to this call, because Workers end the timers of a request with the request.
    await pause(clock, Math.min(ms, left));
    await engine.round();
  }
  const next = await engine.nextDue();
  return next === undefined ? {} : { next };
}
