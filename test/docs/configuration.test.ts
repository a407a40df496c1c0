import { readFileSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { format } from "oxfmt";
import { expect, test } from "vitest";
import { allOptions, reachable, saysDefault, shownOn, withOptions } from "../../site/options.mjs";
import { root } from "./pages.ts";

/** Checks that `docs/configuration.md` has every option, and every environment variable that the packages read. */

const page = readFileSync(join(root, "docs/configuration.md"), "utf8");

/** The option types of the functions that users call. */
const first = [
  "ServeOptions",
  "HandlerOptions",
  "AgentMount",
  "ExpressMountOptions",
  "FastifyMountOptions",
  "ConnectOptions",
  "NodeConnectOptions",
  "SqliteStoreOptions",
  "PostgresStoreOptions",
  "DurableObjectStoreOptions",
  // This type is in a union with a list of addresses, so the test does not find it automatically.
  "TrustProxyOptions",
];

test("the lists equal those of the code: npm run docs -- --index writes them", async () => {
  expect((await format("page.md", withOptions(page), { printWidth: 120 })).code).toBe(page);
});

test("every option of a server, a client and a store is on the page, with those of its parts", () => {
  // The page lists these options with the type that contains them: a handler, a connection or a store.
  const within = [
    "EngineOptions",
    "EngineLimits",
    "HostOptions",
    "HostLimits",
    "MountAddress",
    "InterfaceChoice",
    "PostgresConnectOptions",
  ];
  const wanted = [...reachable(first)].filter((name) => !within.includes(name));
  expect(shownOn(page).toSorted()).toEqual(wanted.toSorted());
  const known = allOptions();
  for (const name of reachable(first))
    for (const option of known.get(name)?.own ?? []) {
      if (name !== "EngineOptions") expect(page, `${name}.${option.name}`).toContain(`- **\`${option.name}\`**`);
    }
});

test("every optional option states its default, or has parts that do", () => {
  const known = allOptions();
  const silent = [...reachable(first)].flatMap((name) =>
    (known.get(name)?.own ?? [])
      .filter((option) => !saysDefault(option) && ![...known.keys()].some((part) => option.type.includes(part)))
      .map((option) => `${name}.${option.name}`),
  );
  expect(silent).toEqual([]);
});

test("every variable of the environment that the packages read is on the page, and no other", () => {
  const read = new Set<string>();
  for (const name of readdirSync(join(root, "packages"))) {
    const folder = join(root, "packages", name, "src");
    for (const file of readdirSync(folder, { recursive: true, encoding: "utf8" })) {
      if (!file.endsWith(".ts")) continue;
      const code = readFileSync(join(folder, file), "utf8").replaceAll(/\/\*[\s\S]*?\*\/|^\s*\/\/.*$/gm, "");
      for (const [, key = ""] of code.matchAll(/\benv(?:\.|\[")([A-Z][A-Z_]+)\b/g)) read.add(key);
      for (const [, keys = ""] of code.matchAll(/const \{([^}]+)\} = (?:process\.|io\.)?env\b/g))
        for (const key of keys.split(",")) read.add(key.trim());
      // The variable's name may be in a constant.
      if (/\benv\[[a-z]/.test(code)) for (const [, key = ""] of code.matchAll(/= "(PARLEY_[A-Z_]+)"/g)) read.add(key);
    }
  }
  const rows = [...page.matchAll(/^\| `([A-Z_]+)`/gm)].map(([, key = ""]) => key);
  expect(rows.toSorted()).toEqual([...read].toSorted());
});
