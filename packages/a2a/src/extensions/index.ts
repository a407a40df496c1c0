export { copyFor } from "./copies.ts";
export {
  defineExtension,
  extensionMethod,
  type DeclaredTypes,
  type DefinedExtension,
  type ExtensionDefinition,
  type NoData,
} from "./define.ts";
export { cycleIn } from "./definition.ts";
export { isPromise } from "./failures.ts";
export { inTime } from "./hook-time.ts";
export { methodRoute } from "./methods.ts";
export { checkedRequest, wrongInRequest } from "./outgoing.ts";
export { declarationOf, paramsOf } from "./params.ts";
export { ExtensionReader, type Readable } from "./reads.ts";
export { requestedFrom } from "./requested.ts";
export { uriProblem } from "./problems.ts";
export { fit, misfits } from "./values.ts";
