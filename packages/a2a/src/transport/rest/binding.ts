import { speaksRest, type RestCodec } from "../../wire/bindings.ts";
import type { BaseAddress, HttpClaim, ServerBinding } from "../server/binding.ts";
import { interfaceAt, pathBelow } from "../server/paths.ts";
import { cannotServe } from "../server/refuse.ts";
import { speakers } from "../server/speakers.ts";
import { restEndpoint } from "./handler.ts";
import { allRoutes, compileRoutes, firstSegments, matchRoute, wholeSegments } from "./routes.ts";

const name = "HTTP+JSON";

/** HTTP+JSON at a server (A2A 1.0 §11): the protocol's paths below one path, an optional tenant segment first. */
export function restBinding(): ServerBinding {
  return {
    name,
    interfaces: (agent, codec) => (speaksRest(codec) ? [interfaceAt(agent, codec)] : []),
    http: {
      claim: (base, codecs) => claim(base, codecs.filter(speaksRest)),
      open: (host) => restEndpoint(host, speakers(name, host.codecs, speaksRest)),
    },
  };
}

function claim({ path, tenants }: BaseAddress, codecs: readonly RestCodec[]): HttpClaim {
  const wires = codecs.map(({ bindings }) => bindings["HTTP+JSON"]);
  // A tenant whose name stands before the paths of another version is served all the same (`/v1`).
  const noTenant = new Set(wires.flatMap(({ routes }) => wholeSegments(routes)));
  for (const tenant of tenants) {
    if (tenant === undefined || !noTenant.has(tenant)) continue;
    throw cannotServe("tenant", `${JSON.stringify(tenant)} cannot be told from a path of the protocol`);
  }
  const tables = wires.map((wire) => compileRoutes(allRoutes(wire)));
  const named = new Set(tenants.map((tenant) => encodeURIComponent(tenant ?? "")));
  const segments = new Set([".well-known", ...wires.flatMap(({ routes }) => firstSegments(routes)), ...named]);
  return {
    below: path,
    owns(at) {
      const below = pathBelow(at, path);
      if (below === undefined) return false;
      // `/api/tasks` is a path of some tenant to the protocol, and here only where there is one of that name.
      return tables.some((table) => {
        const match = matchRoute(table, "GET", below);
        return match !== undefined && (match.tenant === undefined || named.has(match.tenant));
      });
    },
    reserves(at) {
      const below = pathBelow(at, path);
      // What stands above it would take all of it.
      if (below === undefined) return pathBelow(path, at) !== undefined;
      return below === "" || segments.has(below.split("/")[1] ?? "");
    },
    beside: wires.flatMap(({ elsewhere = [] }) => elsewhere.map((route) => route.path)),
  };
}
