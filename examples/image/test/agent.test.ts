import { data, memoryStore, serve, text, type Part, type Task } from "@parley/node";
import { connect } from "@parley/a2a";
import { bytesOf, isRawPart } from "@parley/a2a/model";
import { testAgent } from "@parley/testing";
import { expect, it, onTestFinished } from "vitest";
import { imageAgent } from "../agent.ts";
import { generatingImage } from "../generating-image.ts";
import type { ImageModel, Request } from "../model.ts";
import { fromPng, toPng } from "../png.ts";
import { ask, connectTo, drawBoat, latest, type Version } from "../refine.ts";
import { scripted } from "../scripted.ts";

/* The story of the guide "Life of a Task": a sailboat, then the same one in red. */

/** The scripted model, and its requests. */
function model(): ImageModel & { readonly asked: Request[] } {
  const asked: Request[] = [];
  const own = scripted();
  return {
    asked,
    changes: (message) => own.changes(message),
    draw(request) {
      asked.push(request);
      return own.draw(request);
    },
  };
}

/** The agent over HTTP. */
async function served(drawing = scripted()): Promise<string> {
  const server = await serve(imageAgent(drawing), { port: 0, store: memoryStore(), logger: false });
  onTestFinished(() => server.close());
  return server.url;
}

const pixels = (parts: readonly Part[] | undefined) => fromPng(bytesOf(parts?.find(isRawPart) ?? { raw: "" }));
/** The middle of the hull, and the sky. */
const hullOf = ({ artifact }: Version) => pixels(artifact.parts)?.colorAt(48, 48);
const skyOf = ({ artifact }: Version) => pixels(artifact.parts)?.colorAt(2, 2);

it("draws a sailboat, then a red one: a new task, the same context, the same artifact name, and the client finds the latest version", async () => {
  const drawing = model();
  const client = await connectTo(await served(drawing));
  const [boat, red] = (await drawBoat(client)) as [Version, Version];
  expect(boat.task).toMatchObject({
    status: { state: "TASK_STATE_COMPLETED" },
    artifacts: [
      {
        name: "sailboat_image.png",
        description: "A generated image of a sailboat on the ocean.",
        parts: [{ filename: "sailboat_image.png", mediaType: "image/png" }],
      },
    ],
  });
  expect(red.task).toMatchObject({
    contextId: boat.task.contextId,
    status: { state: "TASK_STATE_COMPLETED" },
    artifacts: [
      {
        name: "sailboat_image.png",
        description: "A generated image of a red sailboat on the ocean.",
        parts: [{ filename: "sailboat_image.png", mediaType: "image/png" }],
      },
    ],
  });
  expect(red.task.id).not.toBe(boat.task.id);
  expect(red.artifact.artifactId).not.toBe(boat.artifact.artifactId);
  expect(red.task.history?.[0]?.referenceTaskIds).toEqual([boat.task.id]);
  // The model was given the first image, and the second one differs from it where it should.
  expect(Buffer.from(drawing.asked[1]?.base?.bytes ?? [])).toEqual(
    Buffer.from(bytesOf(boat.artifact.parts.find(isRawPart)!)),
  );
  expect([hullOf(boat), hullOf(red)]).toEqual([
    [121, 85, 72],
    [211, 47, 47],
  ]);
  expect(skyOf(red)).toEqual(skyOf(boat));
  // A finished task stays as it is.
  expect((await client.getTask(boat.task)).artifacts).toEqual(boat.task.artifacts);
});

it("answers the requests of the guide, as JSON over HTTP, and the request for red in Chinese (Life of a Task, follow-up)", async () => {
  const url = await served();
  const post = async (id: string, message: object) => {
    const response = await fetch(url, {
      method: "POST",
      headers: { "Content-Type": "application/json", "A2A-Version": "1.0" },
      body: JSON.stringify({ jsonrpc: "2.0", id, method: "SendMessage", params: { message } }),
    });
    return ((await response.json()) as { readonly result: { readonly task: Task } }).result.task;
  };
  const boat = await post("req-001", {
    role: "ROLE_USER",
    parts: [{ text: "Generate an image of a sailboat on the ocean." }],
    messageId: "msg-user-001",
  });
  for (const [id, said] of [
    ["2", "Please modify the sailboat to be red."],
    ["3", "把船涂成红色"],
  ]) {
    const red = await post(`req-00${id}`, {
      role: "ROLE_USER",
      messageId: `msg-user-00${id}`,
      contextId: boat.contextId,
      referenceTaskIds: [boat.id],
      parts: [{ text: said }],
    });
    expect(red.contextId).toBe(boat.contextId);
    expect(red.id).not.toBe(boat.id);
    expect(red).toMatchObject({
      status: { state: "TASK_STATE_COMPLETED" },
      artifacts: [
        {
          name: "sailboat_image.png",
          description: "A generated image of a red sailboat on the ocean.",
          parts: [{ filename: "sailboat_image.png", mediaType: "image/png" }],
        },
      ],
    });
    expect(red.artifacts?.[0]?.artifactId).not.toBe(boat.artifacts?.[0]?.artifactId);
  }
});

it("is in the sub-state generating-image while it is WORKING, for callers who asked for it (Extensions, profile extensions)", async () => {
  let release = (): void => {};
  const gate = new Promise<void>((resolve) => (release = resolve));
  const own = scripted();
  const waiting: ImageModel = {
    changes: own.changes,
    async draw(request) {
      await gate;
      return own.draw(request);
    },
  };
  const client = await connectTo(await served(waiting));
  const seen: (readonly [string | undefined, unknown, unknown])[] = [];
  for await (const event of client.sendStreamingMessage("Generate an image of a sailboat")) {
    const { status } = event.statusUpdate ?? event.task ?? {};
    if (status !== undefined)
      seen.push([status.state, status.message?.metadata?.["generating-image"], event.ext(generatingImage)?.subState]);
    if (status?.state === "TASK_STATE_WORKING") release();
  }
  expect(seen.filter(([state]) => state === "TASK_STATE_WORKING")).toContainEqual([
    "TASK_STATE_WORKING",
    true,
    "generating-image",
  ]);
  // The extension does not change the core state, and the sub-state is gone at the end.
  expect(seen.at(-1)).toEqual(["TASK_STATE_COMPLETED", undefined, undefined]);
  const plain = await connect(await served());
  for await (const event of plain.sendStreamingMessage("Generate an image of a house"))
    expect(JSON.stringify(event)).not.toContain("generating-image");
});

it("finds the latest of several versions, and skips tasks that failed or drew something else", async () => {
  const client = await connectTo(await served());
  const [boat, red] = (await drawBoat(client)) as [Version, Version];
  const { contextId = "" } = boat.task;
  await ask(client, "Now change it to be green", red);
  await client.sendMessage({ message: { contextId, parts: [text("Draw a house in the meadow")] } });
  const { task: refused } = await client.sendMessage({ message: { contextId, parts: [text("Draw a cat")] } });
  expect(refused?.status.state).toBe("TASK_STATE_REJECTED");
  const green = await latest(client, contextId, "sailboat_image.png");
  expect(green?.artifact.description).toBe("A generated image of a green sailboat on the ocean.");
  expect((await latest(client, contextId, "house_image.png"))?.artifact.description).toContain("in the meadow");
  expect(await latest(client, contextId, "cat_image.png")).toBeUndefined();
  // An older version can be changed as well: the reference says which one.
  const white = await ask(client, "Make it white instead", boat);
  expect(white.artifacts?.[0]?.description).toBe("A generated image of a white sailboat on the ocean.");
});

it("asks which image is meant if that is unclear, and accepts the answer (Life of a Task, referencing previous artifacts)", async () => {
  const client = await connectTo(await served());
  const boat = await ask(client, "Draw a sailboat");
  const { contextId = "" } = boat;
  const say = async (parts: readonly Part[], more: object = {}): Promise<Task> => {
    const { task } = await client.sendMessage({ message: { contextId, parts, ...more } });
    return task!;
  };
  // A single image in the conversation needs no question.
  expect((await say([text("Make it red")])).artifacts?.[0]?.description).toContain("red sailboat");
  const house = await say([text("Draw a house")]);
  const question = await say([text("Make it green")]);
  expect(question.status).toMatchObject({
    state: "TASK_STATE_INPUT_REQUIRED",
    message: { parts: [{ text: "Which one shall I change? sailboat_image.png, house_image.png" }] },
  });
  const answered = await say([text("the house_image.png")], { taskId: question.id });
  expect(answered.artifacts?.[0]).toMatchObject({
    name: "house_image.png",
    description: expect.stringContaining("green house"),
  });
  // A part can name the artifact, also one that is not the latest.
  const another = await say([text("Make it yellow")]);
  const { artifactId = "" } = house.artifacts?.[0] ?? {};
  const reference = data({}, { mediaType: "text/plain", metadata: { artifactId, taskId: house.id } });
  const yellow = await say([reference], { taskId: another.id });
  expect(yellow.artifacts?.[0]?.description).toContain("yellow house");
});

it("finds no image of another conversation, whatever a message refers to", async () => {
  const client = await connectTo(await served());
  const boat = await ask(client, "Draw a sailboat");
  const { task } = await client.sendMessage({
    message: { referenceTaskIds: [boat.id], parts: [text("Make it red")] },
  });
  expect(task?.status.state).toBe("TASK_STATE_INPUT_REQUIRED");
  expect(task?.status.message?.parts[0]?.text).toBe("I find no image there. Which one shall I change?");
});

it("draws once more after a crash, with the same key, and returns one image", async () => {
  const drawing = model();
  let crashed = false;
  const tested = await testAgent(
    imageAgent({
      ...drawing,
      async draw(request) {
        if (!crashed)
          await new Promise<never>((_, reject) =>
            request.signal.addEventListener("abort", () => reject(new Error("gone"))),
          );
        return drawing.draw(request);
      },
    }),
  );
  onTestFinished(() => tested.close());
  const client = await tested.connect({ extensions: [generatingImage.uri] });
  const states: string[] = [];
  for await (const event of client.sendStreamingMessage("Draw a sailboat")) {
    const state = event.statusUpdate?.status.state ?? (event.artifactUpdate && "artifact");
    if (state !== undefined) states.push(state);
    if (state !== "TASK_STATE_WORKING" || crashed) continue;
    crashed = true;
    await tested.crash();
    await tested.restart();
  }
  expect(states).toEqual(["TASK_STATE_WORKING", "artifact", "TASK_STATE_COMPLETED"]);
  const { tasks } = await client.listTasks({ includeArtifacts: true });
  expect(tasks.map(({ artifacts }) => artifacts?.length)).toEqual([1]);
  expect(drawing.asked.map(({ key }) => key)).toEqual([tasks[0]?.id]);
});

it("makes PNG files, and reads its own", () => {
  const description = "A test";
  const file = toPng({ width: 3, height: 2, description, colorAt: (x, y) => [x, y, 7] });
  expect(Buffer.from(file.subarray(0, 8)).toString("hex")).toBe("89504e470d0a1a0a");
  const read = fromPng(file);
  expect(read).toMatchObject({ width: 3, height: 2, description });
  expect(read?.colorAt(2, 1)).toEqual([2, 1, 7]);
  expect(fromPng(new Uint8Array([1, 2, 3]))).toBeUndefined();
});
