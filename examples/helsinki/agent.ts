import { data, defineAgent, text, type Agent, type HistoryEntry, type Turn } from "@parley/node";

/** The services that the desk books, each with the service that must be booked before. */
const needs = { flight: undefined, hotel: "flight", snowmobiling: "flight", spa: "hotel" } as const;
export type Service = keyof typeof needs;

/** Dependencies of the desk. */
export interface Desk {
  /** Finds the requested service in a message: a model, or the scripted one of `scripted.ts`. */
  understand(message: string): Promise<Service | undefined>;
  /** Books a service, idempotently by `key`. Returns the name of the booking. */
  book(service: Service, on: string | undefined, key: string): Promise<string>;
}

/** Makes the travel desk. Each message begins a task of its own, and tasks of one conversation run at the same time. */
export function travelDesk({ understand, book }: Desk): Agent {
  return defineAgent({
    name: "Travel desk",
    description: "Books flights, and what goes with them.",
    version: "1.0.0",
    skills: [{ id: "book", name: "Book", description: "Books one part of a trip", tags: ["travel"] }],
    defaultOutputModes: ["text/plain", "application/json"],
    resumable: true,
    async *onMessage(turn) {
      const asked = turn.task?.history?.[0]?.parts.map((part) => part.text ?? "").join(" ") ?? turn.text;
      const service = await understand(asked);
      if (service === undefined) {
        yield turn.reply("I book flights, hotels, snowmobiling and spas.");
        return;
      }
      const need = needs[service];
      const on = need === undefined ? [] : await earlier(turn, need);
      if (need !== undefined && on.length !== 1) {
        yield on.length === 0
          ? turn.rejected(`The ${service} needs a ${need}.`)
          : turn.inputRequired(`For which ${need}? ${on.map((each) => each.text).join("; ")}`);
        return;
      }
      yield turn.working(`Booking: ${service}`);
      const booked = await book(service, on[0]?.text, turn.taskId);
      // A spa is added to a hotel: the new version keeps the artifact's name.
      const name = service === "spa" ? "hotel" : service;
      const parts = [text(booked), data({ service, on: on[0]?.taskId ?? null })];
      yield turn.artifact({ artifactId: `${name}-${turn.taskId}`, name, parts });
    },
  });
}

/**
 * The bookings that a message can mean: the artifact that one of its parts names, or those of the tasks that it refers to, or else those
 * of the conversation. Only this conversation is searched, because the caller wrote the ids in a message.
 */
async function earlier({ context, message, number, text: said }: Turn, name: string): Promise<readonly HistoryEntry[]> {
  const history = await context.history({ limit: 1000 });
  const all = history.filter((entry) => entry.artifactId !== undefined && entry.name === name);
  const named = new Set(message.parts.map(({ metadata }) => metadata?.["artifactId"]));
  const meant = all.filter((entry) => named.has(entry.artifactId));
  if (meant.length > 0) return meant;
  // The answer to “which one?”: some words of its name.
  if (number > 1 && said !== "") return all.filter((entry) => entry.text.includes(said));
  const referred = message.referenceTaskIds;
  return referred === undefined ? all : all.filter(({ taskId = "" }) => referred.includes(taskId));
}
