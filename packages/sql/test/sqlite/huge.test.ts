import { execFile } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import { createRequire } from "node:module";
import { join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { promisify } from "node:util";
import { afterAll, expect, it } from "vitest";
import { times } from "../../../../test/counts.ts";
import { diskFolder } from "../../../../test/temporary.ts";

const folder = await mkdtemp(join(diskFolder(), "parley-"));
afterAll(() => rm(folder, { recursive: true }));

const program = fileURLToPath(new URL("huge.ts", import.meta.url));
const tsx = pathToFileURL(createRequire(import.meta.url).resolve("tsx")).href;

/** More of 10 MB each than the store gives as one text; at length more than the 536,870,888 characters over which `libsql` ends the process. */
const many = times(27, 60);

it("outlives pages and tasks of more text than a string can hold, each with an answer or a refusal", async () => {
  const args = ["--conditions=@parley/source", "--import", tsx, program, join(folder, "huge.db"), String(many)];
  const { stdout } = await promisify(execFile)(process.execPath, args);
  expect(JSON.parse(stdout)).toEqual({
    page: [1, many, true],
    "bare page": many + 1,
    "page with it": "UnsupportedOperation",
    task: "UnsupportedOperation",
    "bare task": "huge",
    log: 1,
    "log page": 2,
    conversation: 0,
    claimable: many,
    sweep: { deleted: 0, compacted: 0, more: false },
    "sweep again": { deleted: 0, compacted: 0, more: false },
    deleted: { deleted: 1, compacted: 0, more: false },
    gone: true,
  });
});
