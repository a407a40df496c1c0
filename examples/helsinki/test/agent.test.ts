import { memoryStore, serve, text, type Task } from "@parley/node";
import { connect } from "@parley/a2a";
import { expect, it, onTestFinished } from "vitest";
import { travelDesk, type Desk, type Service } from "../agent.ts";
import { scripted } from "../scripted.ts";
import { bookTrip } from "../trip.ts";

/** The desk over HTTP. */
async function given(book: Desk["book"] = async (service, on) => (on === undefined ? service : `${service} + ${on}`)) {
  const agent = travelDesk({ understand: scripted.understand, book });
  const server = await serve(agent, { port: 0, store: memoryStore(), logger: false });
  onTestFinished(() => server.close());
  const client = await connect(server.url);
  return {
    client,
    async say(request: string, more: object = {}): Promise<Task> {
      const { task } = await client.sendMessage({ message: { ...more, parts: [text(request)] } });
      return task!;
    },
  };
}

const booked = (task: Task | undefined) => task?.artifacts?.[0]?.parts[0]?.text;

it("books four parts as four tasks of one conversation, each on the task that it refers to (Life of a Task, parallel follow-ups)", async () => {
  const { client } = await given();
  const { flight, hotel, snowmobiling, spa } = await bookTrip(client);
  expect([flight, hotel, snowmobiling, spa].map(booked)).toEqual([
    "flight",
    "hotel + flight",
    "snowmobiling + flight",
    "spa + hotel + flight",
  ]);
  expect(new Set([flight, hotel, snowmobiling, spa].map((task) => task?.contextId)).size).toBe(1);
  expect(new Set([flight, hotel, snowmobiling, spa].map((task) => task?.id)).size).toBe(4);
  // The spa is a new version of the hotel's artifact: the same name, another id.
  expect(spa?.artifacts?.[0]?.name).toBe("hotel");
  expect(spa?.artifacts?.[0]?.artifactId).not.toBe(hotel?.artifacts?.[0]?.artifactId);
  expect(spa?.artifacts?.[0]?.parts[1]?.data).toEqual({ service: "spa", on: hotel?.id });
});

it.each([
  {
    language: "English",
    tasks: [
      "Book a flight to Helsinki.",
      "Based on Task 1, book a hotel.",
      "Based on Task 1, book a snowmobile activity.",
      "Based on Task 2, add a spa reservation to the hotel booking.",
    ],
  },
  {
    language: "Chinese",
    tasks: [
      "预订飞往赫尔辛基的航班。",
      "基于 Task 1,预订酒店。",
      "基于 Task 1,预订雪地摩托活动。",
      "基于 Task 2,在酒店预订中增加水疗预约。",
    ],
  },
])(
  "takes the four tasks in the wording of the guide, in $language (Life of a Task, parallel follow-ups)",
  async ({ tasks }) => {
    const { say } = await given();
    const [first = "", second = "", third = "", fourth = ""] = tasks;
    const flight = await say(first);
    const { contextId = "" } = flight;
    const on = ({ id }: Task) => ({ contextId, referenceTaskIds: [id] });
    const [hotel, snowmobiling] = await Promise.all([say(second, on(flight)), say(third, on(flight))]);
    const spa = await say(fourth, on(hotel));
    expect([flight, hotel, snowmobiling, spa].map(booked)).toEqual([
      "flight",
      "hotel + flight",
      "snowmobiling + flight",
      "spa + hotel + flight",
    ]);
  },
);

it("books independent parts at the same time", async () => {
  const begun = new Map<Service, () => void>();
  const both = new Promise<void>((resolve) => {
    for (const service of ["hotel", "snowmobiling"] as const) {
      begun.set(service, () => {
        begun.delete(service);
        if (begun.size === 0) resolve();
      });
    }
  });
  // Neither of the two ends before both have begun: in sequence, they would wait forever.
  const { client } = await given(async (service, on) => {
    begun.get(service)?.();
    if (service === "hotel" || service === "snowmobiling") await both;
    return `${service} + ${on}`;
  });
  expect(booked((await bookTrip(client))["spa"])).toContain("hotel");
});

it.each(["the artifact that the answer names", "the words of the answer"])(
  "asks which one if a message could mean several, and accepts %s (Life of a Task, referencing previous artifacts)",
  async (way) => {
    let count = 0;
    const { client, say } = await given(async (service) => `${service} ${(count += 1)}`);
    const { contextId = "" } = await say("A flight");
    const hotels = [await say("A hotel", { contextId }), await say("Another hotel", { contextId })];
    const asked = await say("A spa", { contextId });
    expect(asked.status.state).toBe("TASK_STATE_INPUT_REQUIRED");
    expect(asked.status.message?.parts[0]?.text).toBe("For which hotel? hotel 2; hotel 3");
    const artifactId = hotels[1]?.artifacts?.[0]?.artifactId ?? "";
    const answer = way.startsWith("the artifact")
      ? { ...text("That one"), metadata: { artifactId, taskId: hotels[1]?.id ?? "" } }
      : text("hotel 3");
    const { task } = await client.sendMessage({ message: { taskId: asked.id, contextId, parts: [answer] } });
    expect(task?.artifacts?.[0]?.parts[1]?.data).toEqual({ service: "spa", on: hotels[1]?.id });
  },
);

it("rejects a request without a valid task: none, one of another conversation, a missing one", async () => {
  const { say } = await given();
  const flight = await say("A flight");
  for (const more of [{}, { referenceTaskIds: [flight.id] }, { referenceTaskIds: ["made up"] }]) {
    const { status } = await say("A hotel", more);
    expect(status.state).toBe("TASK_STATE_REJECTED");
    expect(status.message?.parts[0]?.text).toBe("The hotel needs a flight.");
  }
  // A reference to a task without a flight is rejected, even in the right conversation.
  const { contextId = "" } = flight;
  const hotel = await say("A hotel", { contextId });
  const { status } = await say("Snowmobiling", { contextId, referenceTaskIds: [hotel.id] });
  expect(status.state).toBe("TASK_STATE_REJECTED");
});
