import { data, defineAgent, type Agent, type DelegateClient } from "@parley/a2a";
import type { Job } from "./job.ts";

/** What the manager knows of a customer's car so far. */
export interface Case {
  job?: Job;
  /** What the pictures show. */
  seen?: string;
  /** For how long it has been like that. */
  since?: string;
}

/** A message of the customer. */
export interface Heard {
  readonly text: string;
  readonly pictures: readonly Uint8Array[];
}

/** Understands a message, and looks at pictures: a model, or the scripted one of `scripted.ts`. `known`: what was understood before. */
export type Listen = (heard: Heard, known: Case) => Promise<Case>;

/** Makes the shop manager: the agent that customers talk to. The mechanic is another agent. */
export function shopManager(listen: Listen, mechanic: () => Promise<DelegateClient>): Agent {
  return defineAgent<{ state: Case }>({
    name: "Shop manager",
    description: "Finds out what is wrong with your car, and has it repaired.",
    version: "1.0.0",
    skills: [{ id: "repair", name: "Repair", description: "Has a car diagnosed and repaired", tags: ["car"] }],
    defaultInputModes: ["text/plain", "image/png", "image/jpeg"],
    defaultOutputModes: ["text/plain", "application/json"],
    resumable: true,
    async *onMessage(turn) {
      const pictures = await Promise.all(turn.files().map((picture) => picture.bytes()));
      const found = await listen({ text: turn.text, pictures }, turn.state() ?? {});
      turn.setState(found);
      const { job, seen, since } = found;
      if (job === undefined) yield turn.inputRequired("Which car is it, and what is wrong with it?");
      else if (seen === undefined) yield turn.inputRequired("Please send me pictures of the left wheel.");
      else if (since === undefined) yield turn.inputRequired(`I see ${seen}. How long has this been happening?`);
      else {
        const complaint = `${job.complaint}; ${seen}, ${since}`;
        const { text } = yield* turn.delegate(await mechanic(), data({ ...job, complaint }));
        yield turn.completed(`Your ${job.vehicle.model} is being repaired. ${text}`);
      }
    },
  });
}
