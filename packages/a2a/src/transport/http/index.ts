/** HTTP as the clients of both bindings speak it. */

export { parseJson, refusal, strangeAnswer } from "./answer.ts";
export { type ClientBinding, withoutSlashes } from "./binding.ts";
export {
  abortError,
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
export { untilOver } from "./until-over.ts";
