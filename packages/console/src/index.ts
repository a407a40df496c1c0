/**
 * The console: routes that serve it, and an inspector that connects to other servers' agents.
 * @packageDocumentation
 */

export { consoleRoutes, type ConsoleOptions } from "./console.ts";
export { openInspector, type Inspector, type InspectorOptions, type OpenOptions } from "./inspector.ts";
export type { InspectorLogins } from "./logins.ts";
export type { WireLog } from "./wire-log.ts";
export type {
  AgentEntry,
  CapturedBody,
  ConnectRequest,
  EndRecord,
  HeaderList,
  PieceRecord,
  RawRequest,
  RequestRecord,
  ResponseRecord,
  WireRecord,
} from "./api.ts";
