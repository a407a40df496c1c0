/**
 * For those who operate servers with webhooks: what waits, what failed, and how it goes on.
 * @packageDocumentation
 */

export {
  pushOperator,
  type PushOperator,
  type PushOperatorOptions,
  type PushEntry,
  type PushProblem,
  type RefusedDelivery,
} from "./push/index.ts";
