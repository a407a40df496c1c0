import { invalidParams, type A2AError } from "../../model/index.ts";

/**
 * Why a server cannot be put together, with the option that is wrong.
 *
 * @param sentence - What is wrong, where the name of the option does not begin the sentence.
 */
export function cannotServe(field: string, description: string, sentence = `${field} ${description}`): A2AError {
  return invalidParams([{ field, description }], `This cannot be served: ${sentence}`);
}
