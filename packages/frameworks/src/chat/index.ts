/**
 * An A2A agent for `useChat()` of the AI SDK.
 * @packageDocumentation
 */
export { A2AChatTransport, type A2AChatTransportOptions } from "./transport.ts";
export type { A2AChunk, A2ADataParts, A2AMetadata, A2AUIMessage } from "../shared/types.ts";
