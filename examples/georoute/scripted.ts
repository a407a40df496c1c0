import { RouteRequest, type Read } from "./agent.ts";

/**
 * Stands in for a model: it reads JSON, or recognizes “from 'A' to 'B'” with what to avoid, a map of a trip, and coffee shops within some
 * miles.
 */
export const read: Read = async (message) => {
  if (message.startsWith("{")) return RouteRequest.safeParse(jsonOf(message)).data;
  if (/\bmap\b.*\btrip\b/i.test(message)) return { map: "trip" };
  if (/\bmap\b.*\bcoffee shops?\b/i.test(message)) {
    const [, miles = "1"] = /(?<!\d)(\d{1,4}(?:\.\d{1,3})?)[ -]miles?\b/i.exec(message) ?? [];
    return { map: "nearby", what: "coffee shop", miles: Number(miles) };
  }
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
