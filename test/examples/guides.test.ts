import { join } from "node:path";
import { connect, file, readAuthorization, text } from "@parley/a2a";
import { expect, it, onTestFinished } from "vitest";
import { film } from "../../examples/car-repair/film.ts";
import { logInAt } from "../identity/links.ts";
import { startProvider } from "../identity/provider.ts";
import { Program } from "./program.ts";
import { Reader } from "./reader.ts";

/** Runs a guide's example as `npm start -- NAME` does, with SQLite on disk, so that tests can kill the process with SIGKILL. */
async function run(name: string, environment: Readonly<Record<string, string>> = {}): Promise<Program> {
  const program = await Program.in(join(import.meta.dirname, "../../examples", name, "main.ts"), environment);
  onTestFinished(() => program.end());
  return program;
}

it("helsinki: books each part once, although its process is killed while two of them are booked", async () => {
  const program = await run("helsinki");
  const client = await connect(program.url);
  const { task: flight } = await client.sendMessage("Book a flight to Helsinki.");
  await program.kill();
  // Makes both bookings so slow that a test can kill the process before they end.
  const slow = { PAUSE: "600000" };
  await program.start(slow);
  const { id = "", contextId = "" } = flight ?? {};
  const begin = (request: string) =>
    client.sendMessage({
      message: { contextId, referenceTaskIds: [id], parts: [text(request)] },
      configuration: { returnImmediately: true },
    });
  const begun = await Promise.all(["Book a hotel.", "Book snowmobiling."].map(begin));
  const working = async () => (await client.listTasks({ contextId, status: "TASK_STATE_WORKING" })).tasks.length;
  await expect.poll(working).toBe(2);
  await program.kill();
  await program.start();
  const tasks = await Promise.all(begun.map(({ task }) => client.waitFor(task!)));
  for (const [at, name] of ["hotel", "snowmobiling"].entries()) {
    expect(tasks[at]?.status.state).toBe("TASK_STATE_COMPLETED");
    expect(tasks[at]?.artifacts).toMatchObject([{ name, parts: [{}, { data: { on: id } }] }]);
  }
  expect((await client.listTasks({ contextId })).tasks).toHaveLength(3);
});

it("address-change: continues automatically after a login, although its process is killed while it waits for one (A2A 1.0 §7.6)", async () => {
  const keys = { PARLEY_KEYS: Buffer.alloc(32, 9).toString("base64"), CLIENT_SECRET: "secret-of-the-desk-0123456789" };
  // The provider must know the program's port, so the program starts first, with an issuer that does not exist yet.
  const program = await run("address-change", { ...keys, ISSUER: "http://127.0.0.1:9" });
  const redirectUri = `${program.url}/.well-known/parley/authorization`;
  const provider = await startProvider({
    clients: [{ client_id: "address-desk", client_secret: keys.CLIENT_SECRET, redirect_uris: [redirectUri] }],
  });
  onTestFinished(() => provider.close());
  const client = await connect(program.url);
  const conversation = client.conversation();
  const again = async () => {
    await program.kill();
    await program.start({ ISSUER: provider.issuer });
  };
  await conversation.send("Update the user's address to 221B Baker Street");
  await again();
  const { task } = await conversation.send("+44 20 7946 0000");
  const asked = readAuthorization(task?.status.message);
  await again();
  const { status } = await client.getTask(task!);
  expect(readAuthorization(status.message)).toEqual(asked);
  expect((await logInAt(asked?.url ?? "")).status).toBe(200);
  const done = await client.waitFor(task!, { until: (each) => each.status.state === "TASK_STATE_COMPLETED" });
  expect(done.artifacts).toMatchObject([
    { name: "address", parts: [{ text: "The address of ada is 221B Baker Street." }, {}] },
  ]);
});

it("car-repair: finds the fault and orders one part, although its process is killed between tool calls", async () => {
  const play = async (killAt: number) => {
    const program = await run("car-repair");
    let seen = 0;
    const reader = new Reader(await connect(program.url), async () => {
      seen += 1;
      if (seen !== killAt) return;
      await program.kill();
      await program.start();
    });
    const video = file(film({ knocks: 5, leaks: true }), { filename: "noise.avi", mediaType: "video/x-msvideo" });
    await reader.send("My car is making a rattling noise");
    await reader.send([video]);
    await reader.send("For two weeks");
    const { state, said, artifacts } = await reader.send("2018 Toyota Camry, XYZ123");
    const orders = (await (await connect(`${program.url}/supplier`)).listTasks()).tasks.length;
    return { seen, state, said: said.at(-1), diagnosis: artifacts["diagnosis"], orders };
  };
  const { seen, ...undisturbed } = await play(0);
  expect(undisturbed).toMatchObject({ state: "TASK_STATE_COMPLETED", orders: 1 });
  // The mechanic works during the last events.
  for (const before of [2, 5]) expect(await play(seen - before)).toMatchObject(undisturbed);
});

it("image: draws a boat and a red one, although its process is killed while it draws each of them and in between", async () => {
  const program = await run("image");
  const client = await connect(program.url);
  const restart = async (pause: string) => {
    await program.kill();
    await program.start({ PAUSE: pause });
  };
  /** Draws one image. The process waits for its model long enough for a test to kill it before the result. */
  const draw = async (request: string, refers: object = {}) => {
    await restart("600000");
    const { task } = await client.sendMessage({
      message: { ...refers, parts: [text(request)] },
      configuration: { returnImmediately: true },
    });
    const drawing = async () => (await client.getTask(task!)).status.message?.parts[0]?.text;
    await expect.poll(drawing).toBe("Drawing");
    await restart("5");
    return client.waitFor(task!);
  };
  const boat = await draw("Generate an image of a sailboat on the ocean.");
  const { id, contextId = "" } = boat;
  const red = await draw("Please modify the sailboat to be red.", { contextId, referenceTaskIds: [id] });
  expect(red.artifacts).toMatchObject([
    { name: boat.artifacts?.[0]?.name, description: "A generated image of a red sailboat on the ocean." },
  ]);
  expect((await client.listTasks({ contextId })).tasks).toHaveLength(2);
});
