export { copyFor, isPromise, inTime } from "./hook-calls.ts";
export {
  defineExtension,
  extensionMethod,
  type DeclaredTypes,
  type DefinedExtension,
  type ExtensionDefinition,
  type NoData,
} from "./define.ts";
export { cycleIn, uriProblem } from "./definition.ts";
export { methodRoute } from "./methods.ts";
export { misfitsOfInput, checkedRequest } from "./results.ts";
export { declarationOf, paramsOf, requestedFrom } from "./activation.ts";
export { ExtensionReader, type Readable } from "./reads.ts";
export { fit, misfits } from "./schemas.ts";
