import { elementsOf, membersOf } from "../base/json-text.ts";

/** JSON text of a record, and its kind. */
export interface StoredEvent {
  /** Which event it is. */
  readonly kind: "task" | "message" | "statusUpdate" | "artifactUpdate";
  /** The event as JSON text. */
  readonly json: string;
}

/** The messages of a record as JSON text, in order. Whether they belong to the history is for `isHistory` to say. */
export function messagesOf({ kind, json }: StoredEvent): readonly string[] {
  switch (kind) {
    case "message":
      return [json];
    case "task":
      return messagesOfTask(membersOf(json));
    case "statusUpdate":
      return messagesOfStatus(membersOf(json).get("status"));
    case "artifactUpdate":
      return none;
  }
}

/** The same of the members of a task. */
export function messagesOfTask(task: ReadonlyMap<string, string>): readonly string[] {
  const history = task.get("history");
  return history === undefined ? none : elementsOf(history);
}

/** The same of the `status` of an update. */
export function messagesOfStatus(status: string | undefined): readonly string[] {
  const message = status === undefined ? undefined : membersOf(status).get("message");
  return message === undefined ? none : [message];
}

const none: readonly string[] = [];
