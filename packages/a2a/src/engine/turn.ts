import type { Clock, Logger } from "../base/index.ts";
import { textOf, type JsonValue, type Message, type Task } from "../model/index.ts";
import type { TurnBase, TurnContext } from "../protocol/index.ts";
import type { StoredCall } from "./records.ts";

export interface TurnInit {
  readonly message: Message;
  readonly taskId: string;
  readonly contextId: string;
  readonly task: Task | undefined;
  readonly number: number;
  readonly attempt: number;
  readonly checkpoint: JsonValue | undefined;
  readonly call: StoredCall;
  readonly context: TurnContext;
  readonly logger: Logger;
  readonly clock: Clock;
  readonly signal: () => AbortSignal;
  readonly makeId: () => string;
  readonly flush: () => Promise<void>;
}

/** A turn as an executor sees it. A plain object: the authoring API puts its builders on top of it. */
export function createTurn(init: TurnInit): TurnBase {
  const { message, taskId, contextId, task, number, attempt, checkpoint, call, context, logger, clock } = init;
  return {
    message,
    get text() {
      return textOf(message);
    },
    taskId,
    contextId,
    task,
    number,
    attempt,
    checkpoint,
    principal: call.principal,
    call: {
      version: call.version,
      extensions: call.extensions,
      ...(call.trace !== undefined && { trace: call.trace }),
    },
    metadata: call.metadata,
    acceptedOutputModes: call.acceptedOutputModes,
    extensions: call.extensions,
    get signal() {
      return init.signal();
    },
    context,
    logger,
    clock,
    makeId: init.makeId,
    flush: init.flush,
  };
}
