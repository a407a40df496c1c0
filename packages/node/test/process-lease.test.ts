import { spawnSync } from "node:child_process";
import { describe, expect, it } from "vitest";
import { processLease } from "../src/process.ts";

const { holder, isGone } = processLease();
const [place, pid, start, random] = JSON.parse(holder) as [string, number, number, string];

/** Returns the id of a process that has ended. */
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
    ["that is malformed", () => "not JSON", false],
  ])("%s: gone is %s", (_name, make, gone) => {
    const made = make();
    expect(isGone(typeof made === "string" ? made : JSON.stringify(made))).toBe(gone);
  });

  it("of a sibling that ended is gone once its exit is known, so a kill is never taken for a crash", () => {
    const ended = deadPid();
    const told = new Map<number, "killed" | "crashed">();
    const siblings = {
      group: "one",
      hasEnded: (dead: number) => told.has(dead),
      wasKilled: (dead: number) => told.get(dead) === "killed",
    };
    const lease = processLease(siblings);
    const named = (group: string): string => JSON.stringify([place, ended, start, random, group]);
    expect(JSON.parse(lease.holder)).toHaveLength(5);
    expect(lease.isGone(named("one"))).toBe(false);
    told.set(ended, "killed");
    expect([lease.isGone(named("one")), lease.wasKilled?.(named("one"))]).toEqual([true, true]);
    told.set(ended, "crashed");
    expect([lease.isGone(named("one")), lease.wasKilled?.(named("one"))]).toEqual([true, false]);
    // The ends of processes that another first process had started are not reported. That first process has also ended.
    told.clear();
    expect(lease.isGone(named("another"))).toBe(true);
    expect(lease.isGone(JSON.stringify([place, ended, start, random]))).toBe(true);
    // A live process now has the id of a process that has ended.
    told.set(process.ppid, "killed");
    expect(lease.isGone(JSON.stringify([place, process.ppid, start, random, "one"]))).toBe(false);
  });
});
