/**
 * Extensions of the protocol (A2A 1.0 §4.6): how to define one, and the types of its hooks.
 * @packageDocumentation
 */

export {
  defineExtension,
  extensionError,
  extensionMethod,
  type DefinedExtension,
  type ExtensionDefinition,
  type ExtensionError,
  type ExtensionErrorDefinition,
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
  SubState,
  TaskRows,
  TurnEnd,
  TurnOf,
  TurnReads,
  ValuesAt,
  ValuesOf,
} from "./protocol/index.ts";
