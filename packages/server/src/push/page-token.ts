import { invalidParams, jsonHash } from "@parley/a2a/internal/model/index";
import type { TaskKey } from "../store/index.ts";

/*
 * A page token is a position in the list of one task, with a checksum that tells it from one that this list did not give out. It
 * stays valid when the config at the position is deleted. It is no secret: what a caller may read does not depend on it.
 */

type Position = readonly [created: number, id: string];

/** The token of the page after a position. */
export function tokenAfter([created, id]: Position, task: TaskKey): string {
  return `${checksum(created, id, task)}.${created}.${id}`;
}

/** The position of a token. Throws `InvalidParams`. */
export function afterToken(token: string, task: TaskKey): Position {
  const [, sum, time = "", id = ""] = /^([0-9a-f]{16})\.(\d{1,16})\.(.+)$/s.exec(token) ?? [];
  const created = Number(time);
  // The number has one spelling.
  if (sum !== checksum(created, id, task) || String(created) !== time) {
    throw invalidParams([{ field: "pageToken", description: "is not one that this list gave out" }]);
  }
  return [created, id];
}

function checksum(created: number, id: string, { agent, owner, taskId }: TaskKey): string {
  return jsonHash([agent, owner, taskId, created, id]);
}
