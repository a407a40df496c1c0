// Who may import what, as data. The lint rule `parley/layering` and test/layering.test.ts enforce it; docs/architecture.md
// describes it.

import { readFileSync } from "node:fs";
import { isBuiltin } from "node:module";
import { dirname, join, relative, resolve, sep } from "node:path";
import { root } from "./ready.mjs";

/**
 * Packages, each with the packages that it may import. Every other import must be a dependency in its own manifest.
 * @type {Readonly<Record<string, { readonly imports: readonly string[], readonly node: boolean }>>}
 */
export const packages = {
  a2a: { imports: [], node: false },
  server: { imports: ["a2a"], node: false },
  extensions: { imports: ["a2a", "server"], node: false },
  testing: { imports: ["a2a", "server"], node: false },
  sql: { imports: ["a2a", "server"], node: true },
  grpc: { imports: ["a2a", "server"], node: true },
  nats: { imports: ["a2a", "server"], node: true },
  telemetry: { imports: ["a2a", "server"], node: true },
  mcp: { imports: ["a2a"], node: true },
  frameworks: { imports: ["a2a", "server"], node: false },
  react: { imports: ["a2a"], node: false },
  console: { imports: ["a2a", "server"], node: true },
  node: { imports: ["a2a", "server", "sql", "grpc", "console"], node: true },
  conform: { imports: ["a2a", "grpc"], node: true },
  cli: { imports: ["a2a", "server", "sql", "grpc", "node", "conform", "console", "mcp"], node: true },
};

/**
 * Rooms: folders of a package's `src`, each with the rooms that it may import, of its own package and of those that its package may
 * import. No two rooms have the same name. A file belongs to the room with the longest path that fits. Every room may import `base`.
 * Files directly in `src` put rooms together and do nothing else: they may import every room, and each other.
 */
export const rooms = Object.fromEntries(
  Object.entries({
    a2a: {
      base: "",
      model: "",
      protocol: "model",
      schema: "model",
      wire: "protocol model",
      "wire/v1": "wire protocol model",
      "wire/v11": "wire protocol model",
      "wire/v03": "wire protocol model",
      "transport/server": "protocol wire model",
      "transport/client": "protocol wire model",
      "transport/jsonrpc": "transport/server transport/client protocol wire model",
      "transport/rest": "transport/server transport/client protocol wire model",
      "transport/discovery": "transport/server protocol wire model",
      "transport/router": "transport/discovery transport/server protocol wire model",
      net: "model",
      webhooks: "model",
      receiver: "transport/server wire webhooks net protocol model",
      auth: "protocol net model",
      "auth/tokens": "auth protocol net model",
      credentials: "protocol transport/client net model",
      jws: "model",
      cards: "jws net model",
      extensions: "schema protocol model",
      "extensions/resumable-streams": "extensions protocol",
      "extensions/idempotent-sends": "extensions protocol",
      files: "protocol model",
      client: "files schema protocol transport/client wire auth credentials cards net extensions model",
    },
    server: {
      agent: "files schema protocol model",
      store: "model",
      seal: "model",
      blobs: "files seal store protocol model",
      intask: "store seal protocol model",
      push: "store blobs seal net wire webhooks protocol model",
      page: "model",
      limits: "store protocol model",
      engine:
        "engine/service engine/supervise engine/conversations engine/log engine/shared protocol store blobs push intask auth extensions model",
      "engine/service":
        "engine/supervise engine/run engine/conversations engine/log engine/shared protocol store blobs push intask extensions model",
      "engine/supervise": "engine/run engine/conversations engine/log engine/shared protocol store model",
      "engine/run": "engine/conversations engine/log engine/shared protocol store blobs intask extensions model",
      "engine/conversations": "engine/log engine/shared protocol store model",
      "engine/log": "engine/shared protocol store blobs push model",
      "engine/shared": "protocol store blobs push intask extensions model",
      operate: "engine/run engine/log engine/shared store push intask protocol model",
      server:
        "operate protocol transport/server transport/discovery transport/router wire auth cards limits extensions push intask blobs seal page webhooks engine model",
    },
    extensions: {
      a2ui: "shared extensions protocol model",
      agp: "shared extensions agent protocol model",
      oid4vp: "shared extensions protocol model",
      "secure-passport": "shared extensions jws net protocol model",
      "task-search": "extensions protocol model",
      timestamp: "shared extensions protocol model",
      traceability: "shared extensions protocol model",
      x402: "shared extensions net protocol model",
      shared: "extensions model",
    },
  }).map(([name, rows]) => [
    name,
    Object.fromEntries(Object.entries(rows).map(([room, names]) => [room, names.split(" ").filter(Boolean)])),
  ]),
);

/** Rooms that composition may not import: each version of the wire, except in `wires.ts`, and the inside of the engine. */
const isInside = /^(wire\/v|engine\/)/;

/** Whether a file puts rooms together. `client/index.ts` does it for clients. @param {string} path */
const isComposition = (path) => !path.includes("/") || path === "client/index.ts";

/** The room of a file by its path below `src` of a package; undefined for a file outside of all rooms. @param {string} name @param {string} path */
function roomOf(name, path) {
  if (isComposition(path)) return undefined;
  return Object.keys(rooms[name] ?? {})
    .filter((room) => path.startsWith(`${room}/`))
    .sort((a, b) => b.length - a.length)[0];
}

/** @typedef {{ name: string, path: string }} Place A file: the folder of its package, and its path below `src`. */

/** Whether every file of a package is in a room, or directly in `src`, where it puts rooms together. @param {string} name */
const hasRooms = (name) => Object.hasOwn(rooms, name);

/** @param {Place} from @param {Place} to A file of the same package, or one that is imported by `internal/`. */
function betweenRooms(from, to) {
  const here = roomOf(from.name, from.path);
  const there = roomOf(to.name, to.path);
  if (there === undefined) {
    if (!isComposition(to.path)) return `there is no room of ${to.path}`;
    return here === undefined ? undefined : `${to.path} is composition: rooms never import it`;
  }
  if (from.name === to.name && here === there) return undefined;
  const isOwn = here !== undefined && ["base", ...(rooms[from.name]?.[here] ?? [])].includes(there);
  const isPart =
    here === undefined && (!isInside.test(there) || (from.path === "wires.ts" && there.startsWith("wire/")));
  if (isOwn || isPart) return undefined;
  return `${here ?? (hasRooms(from.name) ? from.path : `packages/${from.name}`)} may not import ${there}`;
}

/**
 * Why an import breaks the table, or undefined where it does not. Imports of types count like those of values.
 * @param {string} file Absolute path of the importing file.
 * @param {string} specifier As it is written in the source.
 * @returns {string | undefined}
 */
export function violation(file, specifier) {
  const [top, name, src, ...below] = relative(root, file).split(sep);
  if (top !== "packages" || name === undefined || src !== "src") return undefined;
  const rules = packages[name];
  if (rules === undefined) return `packages/${name} has no row in scripts/layers.mjs`;
  const from = { name, path: below.join("/") };
  if (hasRooms(name) && !isComposition(from.path) && roomOf(name, from.path) === undefined)
    return `${from.path} has no row in scripts/layers.mjs`;

  if (specifier.startsWith(".")) {
    const [toTop, toName, toSrc, ...to] = relative(root, resolve(dirname(file), specifier)).split(sep);
    if (toTop !== "packages" || toName !== name || toSrc !== "src")
      return "a relative import may not leave its package's src";
    return hasRooms(name) ? betweenRooms(from, { name, path: to.join("/") }) : undefined;
  }

  if (isBuiltin(specifier)) {
    if (!rules.node) return `packages/${name} runs everywhere: no ${specifier}`;
    return specifier.startsWith("node:") ? undefined : `write node:${specifier}`;
  }

  const [, parley, inside] = /^@parley\/([^/]+)(?:\/internal\/(.*))?/.exec(specifier) ?? [];
  if (parley !== undefined) {
    if (!rules.imports.includes(parley)) return `packages/${name} may not import @parley/${parley}`;
    if (inside !== undefined) {
      const problem = betweenRooms(from, { name: parley, path: `${inside}.ts` });
      if (problem !== undefined) return problem;
    } else if (hasRooms(name)) return `rooms import rooms: @parley/${parley}/internal/ and a file`;
  }
  const manifest = readFileSync(join(root, "packages", name, "package.json"), "utf8");
  const { dependencies, peerDependencies, optionalDependencies } =
    /** @type {Readonly<Record<string, object | undefined>>} */ (JSON.parse(manifest));
  const wanted = specifier.split("/", specifier.startsWith("@") ? 2 : 1).join("/");
  if (!Object.hasOwn({ ...dependencies, ...peerDependencies, ...optionalDependencies }, wanted)) {
    return `${wanted} is not a dependency of packages/${name}`;
  }
  return undefined;
}
