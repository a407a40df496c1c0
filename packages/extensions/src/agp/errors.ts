import { extensionError, type ExtensionError } from "@parley/a2a/internal/extensions/errors";
import { agpUri } from "./shapes.ts";

/** The errors of AGP (AGP §5). `is()` recognizes them at a client. */
export const agpErrors: {
  /** Nobody has announced the capability. */
  readonly routeNotFound: ExtensionError;
  /** There are routes, and none satisfies the constraints of the intent. */
  readonly policyViolation: ExtensionError;
  /** The routes have expired, and could not be refreshed. */
  readonly tableStale: ExtensionError;
} = {
  routeNotFound: extensionError(agpUri, {
    reason: "AGP_ROUTE_NOT_FOUND",
    jsonrpc: -32200,
    code: "UnsupportedOperation",
    http: 404,
    grpc: "NOT_FOUND",
    message: "Nobody has announced this capability",
  }),
  policyViolation: extensionError(agpUri, {
    reason: "AGP_POLICY_VIOLATION",
    jsonrpc: -32201,
    code: "UnsupportedOperation",
    message: "No route satisfies the constraints",
  }),
  tableStale: extensionError(agpUri, {
    reason: "AGP_TABLE_STALE",
    jsonrpc: -32202,
    code: "Unavailable",
    message: "The routes have expired",
  }),
};
