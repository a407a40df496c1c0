import type { EngineOptions } from "../engine/index.ts";
import type { Agent } from "@parley/a2a/internal/protocol/index";
import { cannotServe } from "@parley/a2a/internal/transport/server/binding";
import type { CorsOptions } from "@parley/a2a/internal/transport/server/origins";
import type { Codec } from "@parley/a2a/internal/wire/codec";
import { checkMount } from "./option-names.ts";
import type { AgentMount } from "./options.ts";

/* What options mean, and which are refused when the handler is made. */

/** The mounts of the agents. JavaScript callers can pass anything, such as a name that a module does not export. */
export function mountsOf(agents: Agent | AgentMount | readonly AgentMount[]): readonly AgentMount[] {
  const mounts: readonly (Partial<AgentMount> | null | undefined)[] = isAgent(agents)
    ? [{ agent: agents }]
    : Array.isArray(agents)
      ? agents
      : [agents as Partial<AgentMount> | undefined];
  if (mounts.every((mount): mount is AgentMount => isAgent(mount?.agent))) {
    for (const mount of mounts) checkMount(mount);
    return mounts;
  }
  throw cannotServe(
    "agent",
    'must be an agent, as defineAgent() returns it, or a list of mounts: [{ agent, path: "/weather" }]',
  );
}

function isAgent(value: unknown): value is Agent {
  return typeof value === "object" && value !== null && "execute" in value;
}

/** The codecs of the chosen versions, the preferred one first. */
export function codecsOf<T extends Codec>(
  wires: Readonly<Record<string, T>>,
  versions: readonly string[] = Object.keys(wires),
): readonly [T, ...T[]] {
  const known = `This server supports ${Object.keys(wires).join(" and ")}`;
  const [first, ...others] = versions.map((version) => {
    const codec = Object.hasOwn(wires, version) ? wires[version] : undefined;
    if (codec !== undefined) return codec;
    throw cannotServe("versions", `has ${JSON.stringify(version)}, which is not supported. ${known}`);
  });
  if (first === undefined) throw cannotServe("versions", `must have at least one version. ${known}`);
  return [first, ...others];
}

/** The origins of pages that may call, for the check of hosts and origins. */
export function originsOf(cors: CorsOptions | boolean): "*" | readonly string[] {
  return typeof cors === "object" ? cors.origins : cors ? "*" : [];
}

type Store = EngineOptions["store"];

const storeMethods = [
  "append",
  "head",
  "load",
  "read",
  "list",
  "once",
  "conversation",
  "claimable",
  "stranded",
  "features",
  "dueFeatures",
  "sweep",
  "close",
] as const satisfies readonly (keyof Store)[];

/** Refuses what is no store, such as a spread of one, which has none of the methods of its class. */
export function checkStore(store: Partial<Store> | undefined): void {
  if (store === undefined)
    throw cannotServe("store", "is required. Pass memoryStore(), or sqliteStore() of @parley/sql");
  const missing = storeMethods.find((name) => typeof store[name] !== "function");
  if (missing === undefined) return;
  const reason = "A copy of a store by { ...store } has none of the methods of its class";
  throw cannotServe("store", `has no method ${missing}(). ${reason}`);
}

export function checkIds(ids: readonly string[]): void {
  const twice = ids.find((id, at) => ids.indexOf(id) !== at);
  if (twice === undefined) return;
  const reason =
    "The store finds the tasks of an agent by this id, which is its path and tenant where none is set. Give each agent a path or an id of its own";
  throw cannotServe("id", `${JSON.stringify(twice)} is the id of two agents. ${reason}`);
}

export function readPublicUrl(text: unknown): URL {
  const url = typeof text === "string" && URL.canParse(text) ? new URL(text) : undefined;
  const isBase = url !== undefined && /^https?:$/.test(url.protocol) && url.search + url.hash + url.username === "";
  if (url !== undefined && isBase) return url;
  // The value itself may contain a password, so the error does not show it.
  const problem = text === undefined ? "is required" : "is not valid";
  throw cannotServe(
    "publicUrl",
    `${problem}. Set it to the URL at which clients reach this server, such as "https://agents.example.com", without a query, ` +
      "a fragment or a user. Cards contain this URL, and the headers of a request are not a safe source of it",
  );
}
