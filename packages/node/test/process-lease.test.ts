import { spawnSync } from "node:child_process";
import { describe, expect, it } from "vitest";
import { processLease } from "../src/process.ts";

const { holder, isGone } = processLease();
const [place, pid, start, random] = JSON.parse(holder) as [string, number, number, string];

/** The number of a process that has ended. */
function deadPid(): number {
  return spawnSync(process.execPath, ["--version"]).pid;
}

describe("the holder of a lease", () => {
  it("has a different name for each server, and is alive", () => {
    expect(processLease().holder).not.toBe(holder);
    expect(isGone(holder)).toBe(false);
    expect(isGone(processLease().holder)).toBe(false);
  });

  it.each([
    ["that ended on this machine", () => [place, deadPid(), start, random], true],
    ["that had this process's number before", () => [place, pid, start - 10_000, random], true],
    ["that lives", () => [place, process.ppid, start, random], false],
    ["that lives and belongs to the system", () => [place, 1, start, random], false],
    ["on another machine", () => ["elsewhere", deadPid(), start, random], false],
    ["of a thread, which cannot tell when its process began", () => [place, pid, 0, random], false],
    ["that nobody can read", () => "not JSON", false],
  ])("%s: gone is %s", (_name, make, gone) => {
    const made = make();
    expect(isGone(typeof made === "string" ? made : JSON.stringify(made))).toBe(gone);
  });
});
