export { declarationsOf } from "./declare.ts";
export {
  defineExtension,
  extensionMethod,
  methodRoute,
  methodsOf,
  type DeclaredTypes,
  type DefinedExtension,
  type ExtensionDefinition,
  type OwnedMethod,
} from "./define.ts";
export { extensionError, type ExtensionError, type ExtensionErrorDefinition } from "./errors.ts";
export { Activation } from "./activation.ts";
export { cycleIn } from "./definition.ts";
export { ExtensionHooks, type Deliver } from "./hooks.ts";
export { checkedRequest, wrongInRequest } from "./outgoing.ts";
export { declarationOf, paramsOf } from "./params.ts";
export { ExtensionReader, type Readable } from "./reads.ts";
export { requestedFrom } from "./requested.ts";
export type { ExtensionsOfTurn } from "./turn.ts";
export { fit, misfits } from "./values.ts";
