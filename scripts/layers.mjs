// Who may import what, as data. The lint rule `parley/layering` and test/layering.test.ts enforce it; docs/architecture.md
// describes it.

import { readFileSync } from "node:fs";
import { isBuiltin } from "node:module";
import { dirname, join, relative, resolve, sep } from "node:path";
import { fileURLToPath } from "node:url";

const root = dirname(dirname(fileURLToPath(import.meta.url)));

/**
 * A room is a folder of a package's `src`.
 * @typedef {object} Room
 * @property {readonly string[]} imports Rooms that it may import.
 * @property {readonly string[]} doors Its files that other rooms may import; `*` stands for any characters except a slash.
 * @property {readonly string[]} [shared] The same for rooms inside it; absent: its doors.
 */

/**
 * Rooms of `packages/a2a/src`. A file belongs to the room with the longest path that fits. Every room may import `base`.
 * @type {Readonly<Record<string, Room>>}
 */
export const rooms = {
  base: { imports: [], doors: ["*.ts"] },
  model: { imports: [], doors: ["index.ts", "schema.ts"] },
  protocol: { imports: ["model"], doors: ["index.ts"] },
  schema: { imports: ["model"], doors: ["*.ts"] },
  wire: { imports: ["protocol", "model"], doors: ["bindings.ts", "codec.ts", "errors.ts"] },
  "wire/v1": { imports: ["wire", "protocol", "model"], doors: ["index.ts"] },
  "wire/v11": { imports: ["wire", "protocol", "model"], doors: ["index.ts"] },
  "wire/v03": { imports: ["wire", "protocol", "model"], doors: ["index.ts"] },
  transport: { imports: ["transport/server", "transport/router"], doors: ["index.ts"] },
  "transport/server": { imports: ["protocol", "wire", "model"], doors: ["*.ts"] },
  "transport/client": { imports: ["protocol", "wire", "model"], doors: ["*.ts"] },
  "transport/jsonrpc": {
    imports: ["transport/server", "transport/client", "protocol", "wire", "model"],
    doors: ["handler.ts", "client.ts"],
  },
  "transport/rest": {
    imports: ["transport/server", "transport/client", "protocol", "wire", "model"],
    doors: ["handler.ts", "client.ts"],
  },
  "transport/discovery": { imports: ["transport/server", "protocol", "wire", "model"], doors: ["handler.ts"] },
  "transport/router": {
    imports: ["transport/discovery", "transport/server", "protocol", "wire", "model"],
    doors: ["*.ts"],
  },
  net: { imports: ["model"], doors: ["index.ts", "port.ts", "remote-document.ts"] },
  store: {
    imports: ["model"],
    doors: ["index.ts", "owner-data.ts", "port.ts", "search.ts", "snippets.ts", "suspended.ts", "wakeup.ts"],
  },
  webhooks: { imports: ["model"], doors: ["index.ts", "names.ts"] },
  receiver: {
    imports: ["server", "transport/server", "wire", "webhooks", "net", "protocol", "model"],
    doors: ["index.ts", "port.ts"],
  },
  seal: { imports: ["model"], doors: ["index.ts"] },
  blobs: {
    imports: ["files", "seal", "store", "protocol", "model"],
    doors: [
      "blobs.ts",
      "delete.ts",
      "deliver.ts",
      "lazy.ts",
      "mark.ts",
      "options.ts",
      "port.ts",
      "ref.ts",
      "s3.ts",
      "segments.ts",
    ],
  },
  intask: { imports: ["store", "seal", "protocol", "model"], doors: ["index.ts"] },
  push: {
    imports: ["store", "blobs", "seal", "net", "wire", "webhooks", "protocol", "model"],
    doors: ["index.ts", "keys.ts", "lazy-configs.ts", "parts.ts", "port.ts", "stored.ts"],
  },
  auth: {
    imports: ["protocol", "net", "model"],
    doors: ["audited.ts", "authorized.ts", "guarded.ts", "index.ts", "port.ts", "resources.ts"],
  },
  "auth/tokens": { imports: ["auth", "protocol", "net", "model"], doors: ["index.ts"] },
  credentials: {
    imports: ["protocol", "transport/client", "net", "model"],
    doors: ["index.ts", "port.ts", "session.ts"],
  },
  jws: { imports: ["model"], doors: ["jcs.ts", "keys.ts"] },
  cards: { imports: ["jws", "net", "model"], doors: ["index.ts", "port.ts"] },
  page: { imports: ["model"], doors: ["index.ts"] },
  limits: { imports: ["store", "protocol", "model"], doors: ["index.ts", "port.ts"] },
  extensions: {
    imports: ["schema", "protocol", "model"],
    doors: [
      "call-method.ts",
      "declare.ts",
      "definition-methods.ts",
      "errors.ts",
      "hooks.ts",
      "index.ts",
      "methods.ts",
      "turn.ts",
      "*/index.ts",
    ],
    shared: ["errors.ts", "index.ts", "schemas.ts", "strict.ts"],
  },
  "extensions/agp": { imports: ["extensions", "agent", "protocol", "model"], doors: ["index.ts"] },
  "extensions/secure-passport": {
    imports: ["extensions", "jws", "net", "protocol", "model"],
    doors: ["index.ts"],
  },
  "extensions/a2ui": { imports: ["extensions", "protocol", "model"], doors: ["index.ts"] },
  "extensions/resumable-streams": { imports: ["extensions", "protocol"], doors: ["index.ts"] },
  "extensions/idempotent-sends": { imports: ["extensions", "protocol"], doors: ["index.ts"] },
  "extensions/task-search": { imports: ["extensions", "protocol", "model"], doors: ["index.ts"] },
  "extensions/traceability": { imports: ["extensions", "protocol", "model"], doors: ["index.ts"] },
  "extensions/timestamp": { imports: ["extensions", "protocol", "model"], doors: ["index.ts"] },
  "extensions/x402": { imports: ["extensions", "net", "protocol", "model"], doors: ["index.ts"] },
  "extensions/oid4vp": { imports: ["extensions", "protocol", "model"], doors: ["index.ts"] },
  engine: {
    imports: [
      "engine/service",
      "engine/supervise",
      "engine/log",
      "protocol",
      "store",
      "blobs",
      "push",
      "intask",
      "auth",
      "extensions",
      "model",
    ],
    doors: ["index.ts"],
    shared: [
      "bytes.ts",
      "churn-map.ts",
      "conversations.ts",
      "direct-replies.ts",
      "mirror.ts",
      "mistakes.ts",
      "options.ts",
      "refusals.ts",
      "run-store.ts",
      "task-index.ts",
    ],
  },
  "engine/service": {
    imports: [
      "engine",
      "engine/supervise",
      "engine/run",
      "engine/log",
      "protocol",
      "store",
      "blobs",
      "push",
      "intask",
      "extensions",
      "model",
    ],
    doors: ["index.ts", "signal.ts"],
  },
  "engine/supervise": {
    imports: ["engine", "engine/run", "engine/log", "protocol", "store", "model"],
    doors: ["index.ts"],
  },
  "engine/run": {
    imports: ["engine", "engine/log", "protocol", "store", "blobs", "intask", "extensions", "model"],
    doors: ["index.ts"],
  },
  "engine/log": {
    imports: ["engine", "protocol", "store", "blobs", "push", "model"],
    doors: ["index.ts", "timeline.ts"],
  },
  server: {
    imports: [
      "protocol",
      "transport/server",
      "transport/discovery",
      "transport/router",
      "wire",
      "auth",
      "cards",
      "limits",
      "extensions",
      "push",
      "intask",
      "blobs",
      "seal",
      "webhooks",
      "engine",
      "model",
    ],
    doors: ["*.ts"],
  },
  client: {
    imports: [
      "files",
      "schema",
      "protocol",
      "transport/client",
      "wire",
      "auth",
      "credentials",
      "cards",
      "net",
      "extensions",
      "model",
    ],
    doors: ["index.ts"],
  },
  files: { imports: ["protocol", "model"], doors: ["content.ts", "name.ts", "received.ts", "send.ts"] },
  agent: { imports: ["files", "schema", "protocol", "model"], doors: ["index.ts"] },
  testing: { imports: ["*"], doors: ["index.ts"] },
};

/**
 * Files that put rooms together and do nothing else; `wires.ts` alone names versions of the wire.
 * They may import these rooms in addition to what their own room may import.
 * @type {Readonly<Record<string, readonly string[]>>}
 */
export const composition = {
  "index.ts": ["*"],
  "model.ts": ["base", "model"],
  "protocol.ts": ["base", "protocol"],
  "store.ts": ["base", "store"],
  "push.ts": ["push"],
  "blobs.ts": ["blobs"],
  "extensions.ts": ["extensions", "protocol"],
  "display.ts": ["base"],
  "fetch.ts": ["server"],
  "auth.ts": ["auth", "auth/tokens"],
  "credentials.ts": ["credentials"],
  "cards.ts": ["cards"],
  "handler.ts": ["*"],
  "webhooks.ts": ["base", "receiver", "webhooks"],
  "wires.ts": ["wire", "wire/v1", "wire/v11", "wire/v03"],
  "client/index.ts": ["transport/jsonrpc", "transport/rest"],
  "testing/local-bindings.ts": ["*"],
  "testing/test-agent.ts": ["*"],
};

/** Rooms that `*` does not include: the published test suites, each version of the wire, the inside of the engine. */
const byNameOnly = [
  "testing",
  "wire/v1",
  "wire/v11",
  "wire/v03",
  "engine/service",
  "engine/supervise",
  "engine/run",
  "engine/log",
  "auth/tokens",
];

/**
 * Packages, each with the packages that it may import. Every other import must be a dependency in its own manifest.
 * @type {Readonly<Record<string, { readonly imports: readonly string[], readonly node: boolean }>>}
 */
export const packages = {
  a2a: { imports: [], node: false },
  sql: { imports: ["a2a"], node: true },
  grpc: { imports: ["a2a"], node: true },
  nats: { imports: ["a2a"], node: true },
  node: { imports: ["a2a", "sql", "grpc"], node: true },
  conform: { imports: ["a2a", "grpc"], node: true },
  cli: { imports: ["a2a", "sql", "grpc", "node", "conform"], node: true },
};

/** The room of a file by its path below `packages/a2a/src`; undefined for a file outside of all rooms. @param {string} path */
function roomOf(path) {
  return Object.keys(rooms)
    .filter((room) => path.startsWith(`${room}/`))
    .sort((a, b) => b.length - a.length)[0];
}

/** Files of a room that a file of another room may import. @param {string} room @param {string | undefined} from The other room. */
function doorsOf(room, from) {
  const { doors = [], shared } = rooms[room] ?? {};
  return from?.startsWith(`${room}/`) === true ? (shared ?? doors) : doors;
}

/** @param {readonly string[]} doors @param {string} room @param {string} path */
function isDoor(doors, room, path) {
  const inside = path.slice(room.length + 1);
  return doors.some((door) => new RegExp(`^${door.replaceAll(".", "\\.").replaceAll("*", "[^/]*")}$`).test(inside));
}

/** @typedef {{ dependencies?: Record<string, string>, peerDependencies?: Record<string, string>, optionalDependencies?: Record<string, string> }} Manifest */

/** @param {string} name @returns {Manifest} */
function manifestOf(name) {
  return /** @type {Manifest} */ (JSON.parse(readFileSync(join(root, "packages", name, "package.json"), "utf8")));
}

/** @param {string} from @param {string} to Both below `packages/a2a/src`. */
function betweenRooms(from, to) {
  const here = roomOf(from);
  const there = roomOf(to);
  if (there === undefined) {
    if (Object.hasOwn(composition, from) && Object.hasOwn(composition, to)) return undefined;
    return `${to} is composition: rooms never import it`;
  }
  if (here === there) return undefined;
  const granted = composition[from] ?? [];
  const own = here === undefined ? [] : ["base", ...(rooms[here]?.imports ?? [])];
  const any = (granted.includes("*") || own.includes("*")) && !byNameOnly.includes(there);
  if (!any && !granted.includes(there) && !own.includes(there)) {
    return `${here ?? from} may not import ${there}`;
  }
  const doors = doorsOf(there, here);
  if (!isDoor(doors, there, to)) return `${to} is inside ${there}: import ${doors.join(" or ")} of it`;
  return undefined;
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
  const from = below.join("/");

  if (specifier.startsWith(".")) {
    const [toTop, toName, toSrc, ...to] = relative(root, resolve(dirname(file), specifier)).split(sep);
    if (toTop !== "packages" || toName !== name || toSrc !== "src")
      return "a relative import may not leave its package's src";
    if (name !== "a2a") return undefined;
    if (roomOf(from) === undefined && !Object.hasOwn(composition, from))
      return `${from} has no row in scripts/layers.mjs`;
    return betweenRooms(from, to.join("/"));
  }

  if (isBuiltin(specifier)) {
    if (!rules.node) return `packages/${name} runs everywhere: no ${specifier}`;
    return specifier.startsWith("node:") ? undefined : `write node:${specifier}`;
  }

  const parley = /^@parley\/([^/]+)/.exec(specifier)?.[1];
  if (parley !== undefined && !rules.imports.includes(parley))
    return `packages/${name} may not import @parley/${parley}`;
  const { dependencies, peerDependencies, optionalDependencies } = manifestOf(name);
  const wanted = specifier.split("/", specifier.startsWith("@") ? 2 : 1).join("/");
  if (!Object.hasOwn({ ...dependencies, ...peerDependencies, ...optionalDependencies }, wanted)) {
    return `${wanted} is no dependency of packages/${name}`;
  }
  return undefined;
}
