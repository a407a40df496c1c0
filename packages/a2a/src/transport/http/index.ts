/** HTTP as the clients of both bindings speak it. */

export { parseJson, refusal, strangeAnswer } from "./answer.ts";
export type { ClientBinding } from "./binding.ts";
export { aborted, abortError, onAbort } from "./abort.ts";
export {
  type ClientHost,
  type ClientLimits,
  sendRequest,
  type ClientResponse,
  type FetchInit,
  type FetchLike,
  type HeadersRequest,
  type HeadersSource,
  requestHeaders,
  waits,
} from "./request.ts";
export { finishing } from "./finishing.ts";
export { untilOver } from "./until-over.ts";
