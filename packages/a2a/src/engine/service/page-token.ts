import { invalidParams, jsonHash, type ListTasksRequest } from "../../model/index.ts";
import type { ListPosition } from "../../store/index.ts";

/**
 * A place in a list as a token (A2A 1.0 §3.1.4): opaque, good for one caller and one set of filters. The checksum is no
 * secret and keeps nobody out, the scope of the query does that; it tells a made-up token from one that was given out.
 */
export function encodePageToken(position: ListPosition, scope: string, request: ListTasksRequest): string {
  const place = `${position.statusTime}.${position.number}`;
  return `${place}.${checksum(place, scope, request)}`;
}

export function decodePageToken(token: string, scope: string, request: ListTasksRequest): ListPosition {
  const match = /^(\d{1,16}\.\d{1,16})\.([0-9a-f]{16})$/.exec(token);
  const place = match?.[1] ?? "";
  if (match?.[2] !== checksum(place, scope, request)) {
    throw invalidParams([{ field: "pageToken", description: "is not one that this list gave out" }]);
  }
  const [statusTime = "", number = ""] = place.split(".");
  return { statusTime: Number(statusTime), number: Number(number) };
}

function checksum(place: string, scope: string, request: ListTasksRequest): string {
  const { contextId = null, status = null, statusTimestampAfter = null } = request;
  return jsonHash([place, scope, contextId, status, statusTimestampAfter]);
}
