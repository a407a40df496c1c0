import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { nodeProgram } from "./cluster.ts";

test("the program of a node has the packages in it: one that is started during a build is the same as those before", async () => {
  const imports = readFileSync(await nodeProgram(), "utf8").match(/^(?:import|export) [^'\n]*"@parley\/[^"]*";$/gm);
  expect(imports).toBeNull();
});
