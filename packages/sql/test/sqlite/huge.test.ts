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

/**
 * The number of texts of 10 MB, together more than the store returns in one text. Long runs exceed 536,870,888 characters, which would
 * end the process in `libsql`.
 */
const many = times(27, 60);

it("answers or rejects requests for pages and tasks of more text than a string can hold, and the process survives", async () => {
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
