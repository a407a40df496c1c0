import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { generate } from "../../../scripts/descriptors.mjs";

test("descriptors.ts is up to date with `npm run descriptors`", () => {
  const file = fileURLToPath(new URL("../src/descriptors.ts", import.meta.url));
  expect(readFileSync(file, "utf8")).toBe(generate());
});
