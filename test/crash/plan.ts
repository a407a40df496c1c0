import { defineAgent, text, type Agent, type AgentEvent, type AgentYield, type Turn } from "@parley/server";

/**
 * An agent whose message determines its events, so that a killed run can be compared with one that was not killed. Only its pauses
 * are random.
 */

/** Random numbers between 0 and 1, generated from a seed (mulberry32). */
export function random(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

export interface Behaviour {
  readonly resumable: boolean;
  /** Whether it pauses, so that a test can kill it in between. */
  readonly pauses: boolean;
}

/** The state of a turn, stored in checkpoints. `open`: artifacts that accept further chunks. */
type Place = { readonly step: number; readonly open: readonly string[] };

/**
 * `plan 7 60` takes sixty steps, determined by the seed 7. `ask 7 60` takes them and then asks for input. `note x` makes an artifact
 * with the text x.
 */
export function planner({ resumable, pauses }: Behaviour): Agent {
  return defineAgent({
    name: resumable ? "Resumable" : "Plain",
    description: "Says a long story in many small events",
    version: "1.0.0",
    skills: [],
    resumable,
    async *onMessage(turn) {
      const [what, first = "", length = ""] = turn.text.split(" ");
      if (what === "note") return yield turn.artifact({ artifactId: `note-${first}`, parts: [text(first)] });
      const seed = Number(first);
      const steps = Number(length);
      let place = (turn.checkpoint as Place | undefined) ?? { step: 0, open: [] };
      while (place.step < steps) {
        if (pauses && Math.random() < 0.5) await pause(Math.random() * 4);
        const { events, next } = stepOf(turn, seed, place);
        yield events;
        if (next.step % 20 === 0) await turn.flush();
        place = next;
      }
      if (place.step === steps) {
        yield place.open.map((id) => turn.append(id, [text("The end.")], { last: true }));
        yield* turn.stream(tokens(random(seed), pauses), { artifactId: `${told}${turn.number}`, maxDelay: 3 });
        yield turn.saveCheckpoint({ step: steps + 1, open: [] });
      }
      if (what === "ask") yield turn.inputRequired("And then?");
    },
  });
}

/** The prefix of the ids of artifacts whose chunks depend on the time, and so differ between runs. */
export const told = "told-";

async function* tokens(next: () => number, pauses: boolean): AsyncGenerator<string, void, void> {
  for (let count = 0; count < 20; count += 1) {
    if (pauses && Math.random() < 0.5) await pause(Math.random() * 4);
    yield words(next, 20);
  }
}

/** The events of one step: mostly chunks, sometimes with a checkpoint in the same array. */
function stepOf(turn: Turn, seed: number, { step, open }: Place): { events: AgentYield; next: Place } {
  const next = random(seed * 100_003 + step);
  const events: AgentEvent[] = [];
  let left = open;
  for (let count = next() < 0.2 ? 3 : 1; count > 0; count -= 1) {
    const choice = next();
    const id = left[Math.floor(next() * left.length)];
    if (id === undefined || choice < 0.06) {
      const artifactId = turn.makeId();
      left = [...left, artifactId];
      events.push(turn.artifact({ artifactId, name: `of step ${step}`, parts: [text(words(next, 40))], open: true }));
    } else if (choice < 0.1) {
      left = left.filter((one) => one !== id);
      events.push(turn.append(id, [text("Closed.")], { last: true }));
    } else if (choice < 0.2) events.push(turn.working(`Step ${step}`, { keep: choice < 0.15 }));
    else if (choice < 0.3) events.push(turn.append(id, [{ data: { step, values: [next(), null, "ü\u{1f600}"] } }]));
    else if (choice < 0.32) events.push(turn.append(id, [text(words(next, 60_000))]));
    else events.push(turn.append(id, [text(words(next, 80))]));
  }
  const place = { step: step + 1, open: left };
  if (next() < 0.12) events.push(turn.saveCheckpoint(place));
  return { events, next: place };
}

function words(next: () => number, most: number): string {
  return `${Math.floor(next() * 1e9).toString(36)} `.repeat(1 + Math.floor((next() * most) / 7));
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
