import {
  A2AError,
  connect,
  createHandler,
  defineAgent,
  memoryStore,
  serve,
  text,
  type ServeOptions,
  type Store,
  type Turn,
} from "@parley/node";
import { bearer, type Authorizer } from "@parley/a2a/auth";
import { taskSearch, taskSearchUri } from "@parley/extensions/task-search";
import { describe, expect, onTestFinished, test } from "vitest";
import { placeOfTest, stores, type StoreName } from "./stores.ts";

/** Tests the Task Search extension, as specified by packages/extensions/src/task-search/README.md. */

const description = { name: "Painter", description: "Paints", version: "1.0.0", skills: [] } as const;

const painter = defineAgent({
  ...description,
  extensions: [taskSearch],
  async *onMessage(turn) {
    if (turn.text.startsWith("Ask")) return yield turn.inputRequired("Which lake?");
    yield turn.working("Mixing colours");
    yield turn.artifact({ artifactId: "image", name: "Image", parts: [text(`Here is ${turn.text}`)] });
    return yield turn.completed("There you are");
  },
});

const authenticator = bearer({ "ada-token": { subject: "ada" }, "bob-token": { subject: "bob" } });

async function opener(kind: StoreName): Promise<() => Promise<Store>> {
  const place = await placeOfTest(kind);
  return async () => {
    const store = await place.open();
    onTestFinished(() => store.close());
    return store;
  };
}

async function served(store: Store, options: Partial<ServeOptions> = {}, agent = painter) {
  const server = await serve(agent, {
    port: 0,
    grpc: true,
    signals: false,
    logger: false,
    authenticator,
    store,
    ...options,
  });
  let over = false;
  const close = async (): Promise<void> => {
    if (over) return;
    over = true;
    await server.close({ grace: 0 });
  };
  onTestFinished(close);
  const client = async (name: "ada" | "bob", binding = "JSONRPC", version = "1.0") => {
    const headers = { authorization: `Bearer ${name}-token` };
    const made = await connect(server.agents[0]?.card ?? "", { binding, version, headers, extensions: [taskSearch] });
    const search = (query: Parameters<typeof found>[1]) => found(made, query);
    return { client: made, search };
  };
  return { server, close, client };
}

type Searching = Awaited<ReturnType<typeof connecting>>;
const connecting = () => connect("", { extensions: [taskSearch] });

function found(client: Searching, query: { text: string; contextId?: string; pageSize?: number; pageToken?: string }) {
  return client.ext(taskSearch).call("tasks/search", query);
}

const interfaces = ["JSONRPC", "HTTP+JSON", "GRPC"].flatMap((binding) =>
  ["1.0", "0.3"].map((version) => ({ binding, version })),
);

describe.each(stores)("task search on %s", (kind) => {
  test("finds the caller's own tasks over every binding and version", async () => {
    const { client } = await served(await (await opener(kind))());
    const ada = await client("ada");
    const bob = await client("bob");
    const { task } = await ada.client.sendMessage("a red sailboat, no other boat");
    await ada.client.sendMessage("a mountain");
    await bob.client.sendMessage("a blue sailboat");
    for (const { binding, version } of interfaces) {
      const { search } = await client("ada", binding, version);
      const { results, ...page } = await search({ text: '"red sailboat" Boat* sail* there' });
      expect(page).toEqual({ nextPageToken: "", pageSize: 20, totalSize: 1 });
      const [result] = results;
      expect(result?.task).toMatchObject({ id: task?.id, status: { state: "TASK_STATE_COMPLETED" } });
      expect(result?.task).not.toHaveProperty("history");
      expect(result?.task).not.toHaveProperty("artifacts");
      const marked = result?.snippets.flatMap(({ text: part, marks }) =>
        marks.map(({ start, end }) => part.slice(start, end)),
      );
      expect(new Set(marked)).toEqual(new Set(["red sailboat", "boat", "There"]));
      expect(result?.snippets.map(({ artifactId }) => artifactId)).toContain("image");
    }
    // Progress messages are not part of the history.
    expect((await ada.search({ text: "colours" })).totalSize).toBe(0);
    expect((await bob.search({ text: "red" })).results).toEqual([]);
  });

  test("finds what was stored before it was switched on, and what others stored while it was off", async () => {
    const open = await opener(kind);
    const plain = defineAgent({ ...description, onMessage: paintOnly });
    const before = await served(await open(), {}, plain);
    await (await before.client("ada")).client.sendMessage("a sailboat of old");
    await before.close();
    const on = await served(await open());
    const ada = await on.client("ada");
    expect((await ada.search({ text: "sailboat" })).totalSize).toBe(1);
    await on.close();
    const off = await served(await open(), {}, plain);
    await (await off.client("ada")).client.sendMessage("a sailboat of today");
    await off.close();
    const again = await served(await open());
    expect((await (await again.client("ada")).search({ text: "sailboat" })).totalSize).toBe(2);
  });

  test("returns pages, and accepts a token only for its own search", async () => {
    const { client } = await served(await (await opener(kind))());
    const { client: ada, search } = await client("ada");
    const conversation = ada.conversation();
    await conversation.send("Ask me about the lake");
    for (let n = 0; n < 4; n += 1) await ada.sendMessage(`a lake, number ${n}`);
    const ids: string[] = [];
    let pageToken = "";
    do {
      const page = await search({ text: "lake", pageSize: 2, ...(pageToken !== "" && { pageToken }) });
      expect(page.totalSize).toBe(5);
      ids.push(...page.results.map(({ task }) => task.id));
      pageToken = page.nextPageToken;
      if (pageToken !== "") {
        await expect(search({ text: "number", pageToken })).rejects.toMatchObject({ code: "InvalidParams" });
      }
    } while (pageToken !== "");
    expect(new Set(ids).size).toBe(5);
    const { contextId = "" } = conversation;
    expect((await search({ text: "lake", contextId })).results).toHaveLength(1);
    expect((await search({ text: "lake", contextId: "none" })).results).toHaveLength(0);
  });

  test("rejects invalid queries with their field, and accepts any text that contains a word", async () => {
    const { client } = await served(await (await opener(kind))());
    const { search } = await client("ada");
    for (const wrong of ["", "?!", "a b c d e f g h i", `"${"a ".repeat(65)}"`, "x".repeat(1001)]) {
      const error: A2AError = await search({ text: wrong }).then(
        () => expect.fail("It was not refused"),
        (thrown: A2AError) => thrown,
      );
      expect(error.code).toBe("InvalidParams");
      expect(error.fields.map(({ field }) => field)).toEqual([expect.stringMatching(/^(request\.)?text$/)]);
    }
    for (const odd of ['"', "' OR 1=1 --", "NEAR(a b, 2)", "a AND (b", "words:x", "\u0000x", "ｓail*"]) {
      const reply = await search({ text: odd }).catch((thrown: A2AError) => thrown);
      expect([odd, reply instanceof A2AError ? reply.code : "found"]).toEqual([
        odd,
        odd === '"' ? "InvalidParams" : "found",
      ]);
    }
  });

  test("is rejected and hidden like ListTasks, even if an authorizer does not know the method", async () => {
    const authorizer: Authorizer = ({ operation, principal, contextId }) => {
      if (operation === "ListTasks" && contextId === "secret") return "hide";
      return operation === "ListTasks" && principal.subject === "bob" ? "deny" : "allow";
    };
    const { client } = await served(await (await opener(kind))(), { authorizer });
    const ada = await client("ada");
    await ada.client.sendMessage({
      message: { messageId: "m", contextId: "secret", role: "ROLE_USER", parts: [{ text: "a lake" }] },
    });
    expect((await ada.search({ text: "lake" })).totalSize).toBe(1);
    expect((await ada.search({ text: "lake", contextId: "secret" })).totalSize).toBe(0);
    const bob = await client("bob");
    await expect(bob.search({ text: "lake" })).rejects.toMatchObject({ code: "PermissionDenied" });
  });

  test("forgets a task that retention deletes", async () => {
    const store = await (await opener(kind))();
    const { client } = await served(store);
    const { client: ada, search } = await client("ada");
    await ada.sendMessage("a lake");
    expect((await search({ text: "lake" })).totalSize).toBe(1);
    await store.sweep({ now: 0, deleteBefore: Number.MAX_SAFE_INTEGER, limit: 9 });
    expect((await search({ text: "lake" })).totalSize).toBe(0);
  });

  test("switches itself on again if another server of the store has switched it off", async () => {
    const store = await (await opener(kind))();
    const { client } = await served(store);
    const { client: ada, search } = await client("ada");
    await store.search?.use(false);
    await ada.sendMessage("a lake");
    expect((await search({ text: "lake" })).totalSize).toBe(1);
  });
});

async function* paintOnly(turn: Turn) {
  yield turn.completed(turn.text);
}

describe("task search", () => {
  test("is rejected when the server is created, if the store has no full text search", () => {
    const { search: _, ...methods } = Object.fromEntries(
      Object.getOwnPropertyNames(Object.getPrototypeOf(memoryStore())).map((name) => [name, () => undefined]),
    );
    const store = { durable: false, ...methods } as unknown as Store;
    expect(() => createHandler(painter, { store, publicUrl: "http://127.0.0.1" })).toThrow(
      `store has no full text search, which the extension needs: ${taskSearchUri}`,
    );
  });

  test("keeps no index if no agent has it", async () => {
    const open = await opener("SQLite");
    const store = await open();
    const plain = defineAgent({ ...description, onMessage: paintOnly });
    const { client } = await served(store, {}, plain);
    await (await client("ada")).client.sendMessage("a lake");
    const owner = { agent: "/", owner: JSON.stringify([null, "ada"]) };
    await expect(store.search?.find(owner, { terms: [{ words: ["lake"] }], limit: 1 })).rejects.toMatchObject({
      code: "Unavailable",
    });
  });
});
