import { expect, vi } from "vitest";
import type { Child } from "./child.ts";
import type { Attacked } from "./servers.ts";
import { witness, type Witness } from "./witness.ts";

/** The maximum memory of an attacked process, in MiB, which is three times its heap. */
const maxMemory = 768;

/** The number of responses that another caller must get after an attack. */
const answers = 5;

export type Attack = (other: Witness) => Promise<void>;

export interface Allowance {
  /** The number of bytes that a store in memory may keep, because the attack created tasks. */
  readonly keeps?: number;
}

/**
 * Expects that a server under attack stays alive, keeps answering other callers, and never uses more than `maxMemory`. Afterwards the server
 * must hold at most a fifth more memory than at the start.
 */
export async function withstands(server: Attacked, attack: Attack, options?: Allowance): Promise<void> {
  const other = await witness(server.url);
  try {
    await staysSmall(server, other, attack, options);
  } finally {
    await other.stop();
  }
}

/** Runs the same check for any process, with another witness. */
export async function staysSmall(
  child: Child,
  other: Witness,
  attack: Attack,
  { keeps = 0 }: Allowance = {},
): Promise<void> {
  // The first calls allocate memory that the process keeps, so the test makes them before the first measurement.
  await other.answers(10);
  const before = await child.held();
  child.forgetPeak();
  await attack(other);
  await other.answers(answers);
  const { peak } = child;
  expect(peak, "peak of memory, in MiB").toBeLessThan(maxMemory);
  // The process releases memory only some time after the attack, when connections close and pending batches are written.
  await vi.waitFor(async () => expect(await child.held(), `held, from ${before}`).toBeLessThan(1.2 * before + keeps), {
    timeout: 30_000,
    interval: 200,
  });
  if (process.env["ATTACK_FIGURES"] === undefined) return;
  const held = [before, await child.held()].map((bytes) => (bytes / 2 ** 20).toFixed(1));
  console.log(`${expect.getState().currentTestName}: held ${held.join(" → ")} MiB, at most ${peak} MiB`);
}
