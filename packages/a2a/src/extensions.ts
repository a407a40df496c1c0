/**
 * Extensions of the protocol (A2A 1.0 §4.6): how to define one, and the types of its hooks.
 * @packageDocumentation
 */

export {
  defineExtension,
  extensionMethod,
  methodRoute,
  type DeclaredTypes,
  type DefinedExtension,
  type ExtensionDefinition,
} from "./extensions/index.ts";
export type {
  AcceptedCall,
  AcceptedInput,
  ActivatingCall,
  AnyExtension,
  AppendedEvent,
  AppendingTurn,
  DataOf,
  DataPartField,
  DataPartFields,
  EventOf,
  EventReads,
  Extension,
  ExtensionCall,
  ExtensionKind,
  ExtensionMethod,
  ExtensionMethods,
  ExtensionRow,
  ExtensionTurn,
  ExtensionTypes,
  ExtensionWrites,
  MetadataField,
  MetadataFields,
  MetadataFieldsByPlace,
  MetadataPlace,
  RequestingCall,
  RowChange,
  SubState,
  TaskRows,
  TurnEnd,
  TurnOf,
  TurnReads,
  TurnRows,
  ValuesAt,
  ValuesOf,
} from "./protocol/index.ts";
export { extensionError, type ExtensionError, type ExtensionErrorDefinition } from "./extensions/errors.ts";

// The two that each server of Parley declares, and each client uses.
export { idempotentSends, type IdempotentSends } from "./extensions/idempotent-sends/index.ts";
export { resumableStreams, type ResumableStreams } from "./extensions/resumable-streams/index.ts";
