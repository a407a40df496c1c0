import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { generate } from "../../../scripts/descriptors.mjs";

test("`npm run descriptors` writes descriptors.ts as it is", () => {
  const file = fileURLToPath(new URL("../src/descriptors.ts", import.meta.url));
  expect(readFileSync(file, "utf8")).toBe(generate());
});
