import { connect, defineAgent, serve, type Client, type Server, type Store } from "@parley/node";
import { message, text } from "@parley/a2a/model";
import { bearer } from "@parley/a2a/auth";
import { taskSearch } from "@parley/extensions/task-search";
import { describe, expect, onTestFinished, test, vi } from "vitest";
import { placeOfTest, stores, type StoreName } from "./stores.ts";

/** Tests deletion and export of all data of an owner (docs/retention.md). */

/** A word that only Ada's data contain, in lower case as in full-text search. */
const marker = "erasableada";
const bobs = "staysofbob";

const agent = defineAgent({
  name: "Keeper",
  description: "Keeps something everywhere",
  version: "1.0.0",
  skills: [],
  extensions: [taskSearch],
  defaultInputModes: ["*/*"],
  async *onMessage(turn) {
    const [what, mark = ""] = turn.text.split(" ");
    turn.context.setState({ note: `state ${mark}` });
    if (what === "reply") return turn.reply(`replied ${mark}`);
    yield turn.working(`working ${mark}`);
    await turn.step("book", () => ({ number: `step ${mark}` }));
    yield turn.artifact({
      name: "file",
      parts: [text(`artifact ${mark} `.repeat(50)), { raw: btoa(mark), mediaType: "text/plain" }],
    });
    if (what === "ask") return yield turn.inputRequired(`question ${mark}`);
    if (what === "wait") yield* turn.waitFor(`event-${mark}`);
    if (what === "run") await new Promise((resolve) => turn.signal.addEventListener("abort", resolve));
    return undefined;
  },
});

interface Served {
  readonly server: Server;
  readonly store: Store;
  readonly ada: Client;
  readonly bob: Client;
  written(): Promise<string>;
}

async function served(kind: StoreName): Promise<Served> {
  const place = await placeOfTest(kind);
  const store = await place.open();
  const tokens = { "ada-token": { subject: `${marker}@example.com` }, "bob-token": { subject: `${bobs}@example.com` } };
  const server = await serve(agent, {
    port: 0,
    signals: false,
    logger: false,
    store,
    authenticator: bearer(tokens),
    push: true,
  });
  onTestFinished(async () => {
    await server.close({ grace: 0 });
    await store.close();
  });
  const client = (name: string): Promise<Client> =>
    connect(server.url, { headers: { authorization: `Bearer ${name}-token` } });
  return { server, store, ada: await client("ada"), bob: await client("bob"), written: () => place.written() };
}

/** Stores a caller's data of each kind. Returns the ids of the caller's tasks. */
async function fill(client: Client, mark: string): Promise<readonly string[]> {
  await client.sendMessage(`reply ${mark}`);
  const ids: string[] = [];
  for (const what of ["complete", "ask", "wait", "run"]) {
    const configuration = { returnImmediately: what !== "complete" };
    const sent = await client.sendMessage({ message: message(`${what} ${mark}`), configuration });
    ids.push(sent.task?.id ?? expect.fail("no task"));
  }
  const [first = ""] = ids;
  await client.createTaskPushNotificationConfig({
    taskId: first,
    id: `hook-${mark}`,
    url: `https://hooks.example.com/${mark}`,
    token: `secret-${mark}`,
  });
  return ids;
}

async function listed(client: Client): Promise<readonly unknown[]> {
  const { tasks } = await client.listTasks({ includeArtifacts: true });
  return tasks.map((task) => ({ ...task, status: task.status.state })).sort((a, b) => a.id.localeCompare(b.id));
}

describe.each(stores)("all data of an owner, in %s", (kind) => {
  test("is deleted, with running tasks canceled first, and none of it remains; other owners see no difference", async () => {
    const { server, store, ada, bob, written } = await served(kind);
    await fill(bob, bobs);
    const ids = await fill(ada, marker);
    const [, , , running = ""] = ids;
    await expect.poll(async () => (await ada.getTask(running)).artifacts?.length).toBe(1);
    const stream = ada.subscribeToTask(running)[Symbol.asyncIterator]();
    await stream.next();
    await expect
      .poll(async () =>
        (await bob.listTasks({ includeArtifacts: true })).tasks.every((task) => task.artifacts?.length === 1),
      )
      .toBe(true);
    const before = await listed(bob);
    if (kind !== "memory") expect(await written()).toContain(marker);

    const erased = await server.deleteOwner({ subject: `${marker}@example.com` }, { scrub: true });
    expect(erased).toEqual({ tasks: 4, canceled: 3 });
    // The reader of the running task got the end of the task, or the end of the stream.
    const end = await stream.next().then(({ value, done }) => (done === true ? "over" : JSON.stringify(value)), String);
    expect(end).toMatch(/CANCELED|TaskNotFound|not found|over/i);
    for (const id of ids) await expect(ada.getTask(id)).rejects.toMatchObject({ code: "TaskNotFound" });
    expect((await ada.listTasks({})).totalSize).toBe(0);
    expect(await store.upkeep?.owners({ owner: JSON.stringify([null, `${marker}@example.com`]), limit: 9 })).toEqual(
      [],
    );

    const left = await written();
    expect(left).not.toContain(marker);
    expect(left).not.toContain(btoa(marker).replace(/=*$/, "").slice(0, -1));
    if (kind !== "memory") expect(left).toContain(bobs);
    expect(await listed(bob)).toEqual(before);

    // A returning client starts without any earlier data.
    await ada.sendMessage("reply again");
    await ada.sendMessage("complete again");
    expect((await ada.listTasks({})).totalSize).toBe(1);
    expect((await server.deleteOwner({ subject: `${marker}@example.com` })).tasks).toBe(1);
    expect(await server.deleteOwner("nobody")).toEqual({ tasks: 0, canceled: 0 });
  });

  test("is deleted without copying the file, which would block all writers, unless that is requested", async () => {
    const { server, store, ada } = await served(kind);
    const scrub = vi.spyOn(store.upkeep ?? expect.fail("no upkeep"), "scrub");
    await ada.sendMessage(`complete ${marker}`);
    expect(await server.deleteOwner({ subject: `${marker}@example.com` })).toEqual({ tasks: 1, canceled: 0 });
    expect(scrub).not.toHaveBeenCalled();
    await server.deleteOwner({ subject: `${marker}@example.com` }, { scrub: true });
    expect(scrub).toHaveBeenCalledOnce();
  });

  test("is exported as lines of JSON, tasks as GetTask returns them, and with an end", async () => {
    const { server, ada, bob } = await served(kind);
    await fill(bob, bobs);
    const ids = await fill(ada, marker);
    const [done = "", asking = ""] = ids;
    await expect.poll(async () => (await ada.getTask(asking)).status.state).toBe("TASK_STATE_INPUT_REQUIRED");
    let pieces = "";
    for await (const piece of server.exportOwner({ subject: `${marker}@example.com` })) pieces += piece;
    expect(pieces).not.toContain(bobs);
    expect(pieces.endsWith("\n")).toBe(true);
    const lines = pieces
      .trimEnd()
      .split("\n")
      .map((line) => JSON.parse(line) as Record<string, unknown> & { type: string });
    const of = (type: string) => lines.filter((line) => line.type === type);
    // A memory store does not keep direct replies, so the server itself keeps the newest ones.
    const replies = kind === "memory" ? [] : [`reply ${marker}`, `replied ${marker}`];
    expect(lines[0]).toMatchObject({ type: "export", version: 1, agents: ["/"] });
    expect(lines.at(-1)).toEqual({ type: "end", tasks: 4, contexts: 5, messages: replies.length });
    expect(of("context").length).toBe(5);
    expect(of("context")[0]).toMatchObject({ agent: "/" });
    const said = of("message").map((line) => (line["message"] as { parts: unknown }).parts);
    expect(said).toEqual(replies.map((reply) => [{ text: reply }]));
    const tasks = new Map(of("task").map(({ task }) => [(task as { id: string }).id, task]));
    expect([...tasks.keys()].sort()).toEqual([...ids].sort());
    expect(tasks.get(done)).toEqual(await ada.getTask(done));
    expect(tasks.get(asking)).toEqual(await ada.getTask(asking));
  });
});
