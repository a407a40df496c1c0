import { expect, vi } from "vitest";
import type { Child } from "./child.ts";
import type { Attacked } from "./servers.ts";
import { witness, type Witness } from "./witness.ts";

/** What an attacked process may have of the machine at a time, in MiB: its heap, and half as much again and again beside it. */
const mostMemory = 768;

/** Answers that somebody else gets at least, during an attack and after it. */
const answers = 5;

export type Attack = (other: Witness) => Promise<void>;

export interface Allowance {
  /** Bytes that a store in memory keeps rightly, since the attack made a task of them. */
  readonly keeps?: number;
}

/**
 * Holds a server to what it promises under attack: it lives, answers others meanwhile, never takes more memory than it
 * should, and in the end holds no more than a fifth more than at the start.
 */
export async function withstands(server: Attacked, attack: Attack, options?: Allowance): Promise<void> {
  const other = await witness(server.url);
  try {
    await staysSmall(server, other, attack, options);
  } finally {
    await other.stop();
  }
}

/** The same for any process, with a witness of one's own. */
export async function staysSmall(
  child: Child,
  other: Witness,
  attack: Attack,
  { keeps = 0 }: Allowance = {},
): Promise<void> {
  // What is made with the first questions is there before the first look.
  await other.answers(10);
  const before = await child.held();
  child.forgetPeak();
  await attack(other);
  await other.answers(answers);
  const { peak } = child;
  expect(peak, "memory at its most, in MiB").toBeLessThan(mostMemory);
  // What an attack left goes by and by: connections close, a writer's last batch is let go of.
  await vi.waitFor(async () => expect(await child.held(), `held, from ${before}`).toBeLessThan(1.2 * before + keeps), {
    timeout: 30_000,
    interval: 200,
  });
  if (process.env["ATTACK_FIGURES"] === undefined) return;
  const held = [before, await child.held()].map((bytes) => (bytes / 2 ** 20).toFixed(1));
  console.log(`${expect.getState().currentTestName}: held ${held.join(" → ")} MiB, at most ${peak} MiB`);
}
