export { ExtensionHooks, type Deliver } from "./hooks.ts";
export type {
  AcceptedCall,
  AcceptedInput,
  AppendedEvent,
  AppendingTurn,
  Extension,
  ExtensionRow,
  RowChanges,
  TaskRows,
} from "./port.ts";
