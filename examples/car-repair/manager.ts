import { data, defineAgent, type Agent, type DelegateClient } from "@parley/node";
import type { Job } from "./job.ts";
import { sentences, type Language, type Seen } from "./words.ts";

/** What the manager knows about a customer's car so far. */
export interface Case {
  /** The customer's language. */
  language: Language;
  complaint?: string;
  vehicle?: Job["vehicle"];
  /** What the video shows. */
  seen?: Seen;
  /** How long the problem has existed. */
  since?: string;
}

/** A message from the customer. */
export interface Heard {
  readonly text: string;
  readonly videos: readonly Uint8Array[];
}

/** Understands messages and videos: a model, or the scripted one. `known`: the facts so far. */
export type Listen = (heard: Heard, known: Partial<Case>) => Promise<Case>;

/** Makes the shop manager: the agent that customers talk to. The mechanic is another agent. */
export function shopManager(listen: Listen, mechanic: () => Promise<DelegateClient>): Agent {
  return defineAgent<{ state: Case }>({
    name: "Shop manager",
    description: "Finds out what is wrong with your car, and has it repaired.",
    version: "1.0.0",
    skills: [
      {
        id: "repair",
        name: "Repair",
        description: "Has a car diagnosed and repaired",
        tags: ["car"],
        examples: ["My car is making a rattling noise", "我的车有咔哒咔哒的异响"],
      },
    ],
    defaultInputModes: ["text/plain", "video/x-msvideo", "video/mp4", "video/webm"],
    defaultOutputModes: ["text/plain", "application/json"],
    resumable: true,
    async *onMessage(turn) {
      const videos = await Promise.all(turn.files().map((video) => video.bytes()));
      const found = await listen({ text: turn.text, videos }, turn.state() ?? {});
      turn.setState(found);
      const { language, complaint, vehicle, seen, since } = found;
      const say = sentences[language];
      if (complaint === undefined) yield turn.inputRequired(say.whatIsWrong);
      else if (seen === undefined) yield turn.inputRequired(videos.length > 0 ? say.sendAnother : say.sendVideo);
      else if (since === undefined) yield turn.inputRequired(say.howLong(seen));
      else if (vehicle === undefined) yield turn.inputRequired(say.whichCar);
      else {
        const job = { language, vehicle, complaint: `${complaint}; ${since}`, ...seen } satisfies Job;
        const { text } = yield* turn.delegate(await mechanic(), data(job));
        yield turn.completed(say.done(vehicle.model, text));
      }
    },
  });
}
