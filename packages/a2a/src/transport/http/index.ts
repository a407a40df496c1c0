/** HTTP as the clients of both bindings speak it. */

export { parseJson, refusal, strangeAnswer } from "./answer.ts";
export type { ClientBinding } from "./binding.ts";
export { aborted, abortError, onAbort } from "./abort.ts";
export {
  type ClientHost,
  type ClientLimits,
  exchange,
  type Exchange,
  type FetchInit,
  type FetchLike,
  type HeadersRequest,
  type HeadersSource,
  requestHeaders,
  waits,
} from "./exchange.ts";
export { finishing } from "./finishing.ts";
export { untilOver } from "./until-over.ts";
