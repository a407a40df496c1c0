export { ExtensionHooks, type Deliver } from "./hooks.ts";
export type {
  AcceptedCall,
  AcceptedInput,
  AppendedEvent,
  AppendingTurn,
  Extension,
  ExtensionRow,
  TaskRows,
} from "./port.ts";
