import { connect, text, type Client, type Task } from "@parley/a2a";

/** Starts a new task in the same conversation, which refers to the task it builds on. */
async function after({ id, contextId = "" }: Task, request: string, client: Client): Promise<Task> {
  const message = { contextId, referenceTaskIds: [id], parts: [text(request)] };
  const { task } = await client.sendMessage({ message });
  if (task?.status.state !== "TASK_STATE_COMPLETED") throw new Error(task?.status.message?.parts[0]?.text);
  return task;
}

/** Books the trip. Each part begins as soon as the part before it is booked. */
export async function bookTrip(client: Client): Promise<Readonly<Record<string, Task>>> {
  const { task: flight } = await client.sendMessage("Book a flight to Helsinki.");
  if (flight === undefined) throw new Error("There is no flight");
  const hotel = after(flight, "Based on the flight, book a hotel.", client);
  const [snowmobiling, spa] = await Promise.all([
    after(flight, "Based on the flight, book snowmobiling.", client),
    hotel.then((booked) => after(booked, "Add a spa reservation to the hotel.", client)),
  ]);
  return { flight, hotel: await hotel, snowmobiling, spa };
}

// node trip.ts URL
if (process.argv[1]?.endsWith("trip.ts") === true) {
  const trip = await bookTrip(await connect(process.argv[2] ?? "http://127.0.0.1:4000"));
  for (const [name, { artifacts }] of Object.entries(trip)) console.log(name, "→", artifacts?.[0]?.parts[0]?.text);
}
