export type * from "./json.ts";
export type * from "./types.ts";
export * from "./card.ts";
export * from "./draft.ts";
export * from "./errors.ts";
export * from "./options.ts";
export * from "./log.ts";
export * from "./reduce.ts";
export {
  check,
  jsonName,
  maxViolations,
  type Checked,
  type CheckMode,
  type Schema,
  type SchemaIssue,
  type SchemaResult,
  type StandardSchema,
} from "./schema.ts";
export * from "./schemas.ts";
export * from "./content.ts";
export * from "./content-hash.ts";
