import { RouteRequest, type Read } from "./agent.ts";

/** In place of a model: it reads JSON, or looks for “from 'A' to 'B'”, and for what to avoid. */
export const read: Read = async (message) => {
  if (message.startsWith("{")) return RouteRequest.safeParse(jsonOf(message)).data;
  const [, origin, destination] = /from ['"](.+?)['"] to ['"](.+?)['"]/.exec(message) ?? [];
  if (origin === undefined || destination === undefined) return undefined;
  const tolls = /avoid\w* tolls/.test(message) ? ["avoid_tolls" as const] : [];
  const ferries = /avoid\w* ferries/.test(message) ? ["avoid_ferries" as const] : [];
  const highways = /prefer\w* highways/.test(message) ? ["prefer_highways" as const] : [];
  return { origin, destination, preferences: [...tolls, ...ferries, ...highways] };
};

function jsonOf(message: string): unknown {
  try {
    return JSON.parse(message);
  } catch {
    return undefined;
  }
}
