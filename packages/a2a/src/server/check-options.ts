import type { Clock } from "../base/index.ts";
import type { Agent } from "../protocol/index.ts";
import { cannotServe, type CorsOptions, Unfinished } from "../transport/server/index.ts";
import type { Codec } from "../wire/codec.ts";
import type { AgentMount, HandlerLimits } from "./options.ts";

/** The types forbid anything else; who writes JavaScript, or passes what a module did not export, hears it here. */
export function mountsOf(agents: Agent | AgentMount | readonly AgentMount[]): readonly AgentMount[] {
  const mounts: readonly (Partial<AgentMount> | null | undefined)[] = isAgent(agents)
    ? [{ agent: agents }]
    : Array.isArray(agents)
      ? agents
      : [agents as Partial<AgentMount> | undefined];
  if (mounts.every((mount): mount is AgentMount => isAgent(mount?.agent))) return mounts;
  throw cannotServe(
    "agent",
    'is none: give what defineAgent() makes, or a list of mounts: [{ agent, path: "/weather" }]',
  );
}

function isAgent(value: unknown): value is Agent {
  return typeof value === "object" && value !== null && "execute" in value;
}

/** The codecs of the versions that are asked for, the preferred one first. */
export function codecsOf<T extends Codec>(
  wires: Readonly<Record<string, T>>,
  versions: readonly string[] = Object.keys(wires),
): readonly [T, ...T[]] {
  const [first, ...others] = versions.map((version) => {
    const codec = Object.hasOwn(wires, version) ? wires[version] : undefined;
    if (codec !== undefined) return codec;
    const known = Object.keys(wires).join(" and ");
    throw cannotServe("versions", `cannot have ${JSON.stringify(version)}: ${known} are spoken here`);
  });
  if (first === undefined) throw cannotServe("versions", "must name one at least");
  return [first, ...others];
}

/** A bound that is no number bounds nothing, and one below 1 lets nothing through. */
export function checkLimits(limits: HandlerLimits = {}): void {
  for (const [name, value] of Object.entries(limits) as [string, unknown][]) {
    if (value === undefined || (typeof value === "number" && value >= 1)) continue;
    throw cannotServe(`limits.${name}`, `must be a number of at least 1, and is ${JSON.stringify(value)}`);
  }
}

/** The budget of request bodies that come in: `bytes` for all, in bytes, where one may have `largest`. Default: 64 MiB, or four of the largest. */
export function unfinishedBodies(largest: number, bytes: number | undefined, clock: Clock): Unfinished {
  const all = bytes ?? Math.max(64 << 20, 4 * largest);
  if (all >= 2 * largest) return new Unfinished(all, largest, clock);
  throw cannotServe("limits.unfinishedBytes", `must be twice \`limits.bodyBytes\` at least, which is ${largest}`);
}

/** Pages that may call, as host admission compares them. */
export function originsOf(cors: CorsOptions | boolean): "*" | readonly string[] {
  return typeof cors === "object" ? cors.origins : cors ? "*" : [];
}

export function checkIds(ids: readonly string[]): void {
  const twice = ids.find((id, at) => ids.indexOf(id) !== at);
  if (twice === undefined) return;
  throw cannotServe("id", `${JSON.stringify(twice)} is the name of two agents, whose tasks could not be told apart`);
}

export function readPublicUrl(text: unknown): URL {
  const url = typeof text === "string" && URL.canParse(text) ? new URL(text) : undefined;
  const isBase = url !== undefined && /^https?:$/.test(url.protocol) && url.search + url.hash + url.username === "";
  if (url !== undefined && isBase) return url;
  throw cannotServe(
    "publicUrl",
    'is required: the address that clients reach this server at, such as "https://agents.example.com". ' +
      "Cards must say it, and a request's own headers cannot be trusted with it",
  );
}
