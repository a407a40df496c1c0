import { join } from "node:path";
import { expect, test } from "vitest";
import { build, createLogger } from "vite";

test("the application is built without a warning", async () => {
  const warnings: string[] = [];
  const warn = (message: string): void => void warnings.push(message);
  await build({
    root: join(import.meta.dirname, "..", "app"),
    logLevel: "warn",
    build: { write: false, reportCompressedSize: false },
    customLogger: { ...createLogger(), info: () => {}, warn, warnOnce: warn },
  });
  expect(warnings).toEqual([]);
});
