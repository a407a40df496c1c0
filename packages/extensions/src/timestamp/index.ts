/**
 * The Timestamp extension: messages and artifacts say when they were created.
 * @packageDocumentation
 */

export {
  specifiedTimestamp,
  timestamp,
  timestampExtension,
  timestampSpecificationUri,
  timestampUri,
  withTimestamp,
  type TimestampExtension,
  type TimestampOptions,
} from "./timestamp.ts";
