/** The versions of the protocol, for bindings and tools that are put together elsewhere. */

export { codecV1, jsonRpcClientV1 } from "./wire/v1/index.ts";
