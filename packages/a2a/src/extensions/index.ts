export { ExtensionHooks, type Deliver, type RowChange, type RowStore } from "./hooks.ts";
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
