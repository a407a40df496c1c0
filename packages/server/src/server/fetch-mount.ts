import type { HostPrincipal, RequestFacts } from "@parley/a2a/internal/protocol/index";
import { toFetch, type FetchFacts } from "@parley/a2a/internal/transport/server/fetch";
import type { Handler } from "./options.ts";

/** Options of `fetchMount`. `Platform`: what is passed in addition to the request. */
export interface FetchMountOptions<Platform extends readonly unknown[]> {
  /**
   * Who sends a request, for `hostUser()` of `@parley/a2a/auth`: the caller, or something falsy where there is none. It is called when
   * it is read, and once for a request.
   */
  readonly principal?: (request: Request, ...platform: Platform) => HostPrincipal | Promise<HostPrincipal>;
  /** What else the runtime or the framework knows of the client, such as its address. */
  readonly facts?: (request: Request, ...platform: Platform) => Omit<RequestFacts, "principal">;
}

/**
 * Agents in a framework of the Fetch API, such as Hono and Next.js, that knows its users. It is `handler.fetch` with what the framework
 * passes in addition to the request, such as its context, in the types of the framework.
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
