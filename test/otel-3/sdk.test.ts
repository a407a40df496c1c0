import { execFileSync } from "node:child_process";
import { join } from "node:path";
import { expect, test } from "vitest";

/**
 * `@parley/telemetry` with SDK 3 and its API 1.10, whose package is another one than that of `@parley/telemetry` here. SDK 3 supports Node 22.15
 * and newer: `npm run test:nodes` runs this there.
 */

const kinds = { internal: 0, server: 1, client: 2 };

test("SDK 3 gets the spans of a call as one trace, and the metrics", () => {
  const program = join(import.meta.dirname, "sdk.mjs");
  const printed = execFileSync(process.execPath, [program], { encoding: "utf8" });
  expect(JSON.parse(printed)).toEqual({
    spans: [
      ["execute_tool look up", kinds.internal, "invoke_agent Toy"],
      ["invoke_agent Toy", kinds.internal, "SendMessage"],
      ["SendMessage", kinds.server, "SendMessage"],
      ["SendMessage", kinds.client, null],
    ],
    traces: 1,
    metrics: 20,
  });
});
