import { random } from "../crash/plan.ts";

/* The faults of the cluster, determined by the seed. */

/** The kinds of faults. */
export type Harm =
  | "kill"
  | "stop"
  | "term"
  | "crash database"
  | "restart database"
  | "cut clients"
  | "cut database"
  | "isolate"
  | "drop wake-ups";

/** A planned fault. */
export interface PlannedFault {
  /** The time in milliseconds from the start. */
  readonly after: number;
  readonly what: Harm;
  /** The number of the node. -1 for all nodes, or for the database. */
  readonly node: number;
  /** The duration in milliseconds. */
  readonly lasts: number;
}

export interface PlanOptions {
  readonly seed: number;
  /** The length of the run in milliseconds. */
  readonly length: number;
  readonly nodes: number;
}

/** The weight of each kind, and its minimum and maximum duration. */
const kinds: readonly (readonly [what: Harm, weight: number, least: number, most: number])[] = [
  ["kill", 4, 200, 3_000],
  ["stop", 4, 500, 12_000],
  ["term", 3, 200, 2_000],
  ["crash database", 1, 200, 2_000],
  // The maximum is longer than the time for which a call waits for the database by default.
  ["restart database", 1, 200, 14_000],
  ["cut clients", 3, 0, 0],
  ["cut database", 2, 0, 0],
  // Clients still reach the node, but the node does not reach the database.
  ["isolate", 3, 1_000, 12_000],
  ["drop wake-ups", 2, 2_000, 10_000],
];

const ofNodes: readonly Harm[] = ["kill", "stop", "term", "isolate", "drop wake-ups"];

/** The fault-free end of each minute, in milliseconds. During this time, everything must be as fast as normal. */
const calm = 20_000;

/** Returns the faults of a run, in order. The first fault comes after two seconds, and none comes in the calm end of each minute. */
export function plan({ seed, length, nodes }: PlanOptions): readonly PlannedFault[] {
  const next = random(seed);
  const total = kinds.reduce((sum, [, weight]) => sum + weight, 0);
  const faults: PlannedFault[] = [];
  // Starts with each kind once, in an order that depends on the seed. Random kinds follow.
  const first = kinds
    .map(([what]) => ({ what, place: next() }))
    .sort((one, other) => one.place - other.place)
    .map(({ what }) => what);
  for (let after = 2_000; after < length - 5_000; after += 2_000 + next() * 5_000) {
    if (after % 60_000 > 60_000 - calm) continue;
    let choice = next() * total;
    const wanted = first.shift();
    const [what, , least, most] =
      kinds.find(([name, weight]) => (wanted === undefined ? (choice -= weight) < 0 : name === wanted)) ?? kinds[0]!;
    const node = ofNodes.includes(what) ? Math.floor(next() * nodes) : -1;
    faults.push({ after: Math.round(after), what, node, lasts: Math.round(least + next() * (most - least)) });
  }
  return faults;
}
