/** What a server is put together of, beside the engine and the bindings. */

export {
  checkIds,
  checkLimits,
  codecsOf,
  mountsOf,
  originsOf,
  readPublicUrl,
  unfinishedBodies,
} from "./check-options.ts";
export { toFetch, type FetchFacts, type FetchHandler } from "./fetch.ts";
export type { AgentMount, Handler, HandlerLimits, HandlerOptions, ServedAgent } from "./options.ts";
export { engineAgent, serveAgent, serviceMount } from "./serve-agent.ts";
