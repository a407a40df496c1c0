import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { nodeProgram } from "./cluster.ts";

test("the program of a node bundles the packages: one that starts during a build is the same as those before", async () => {
  const imports = readFileSync(await nodeProgram(), "utf8").match(/^(?:import|export) [^'\n]*"@parley\/[^"]*";$/gm);
  expect(imports).toBeNull();
});
