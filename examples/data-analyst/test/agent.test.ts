import { mkdtemp, rm } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { data, nodeDialer, serve, text, type Agent, type Client, type Part, type Task } from "@parley/node";
import { collect, connect, type StreamResponse } from "@parley/a2a";
import { guardedFetch } from "@parley/a2a/protocol";
import { sqliteStore } from "@parley/sql/sqlite";
import { afterEach, describe, expect, it, onTestFinished } from "vitest";
import { createDataAnalyst } from "../src/agent.ts";
import { hostile, strange, unending } from "../../../packages/node/test/support/hostile.ts";
import { artifactOf, csvPart, dataOf, dataset, largeCsv, lastWords, svgOf } from "./support.ts";

const closers: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close();
});

interface Host {
  readonly path?: string;
  readonly agent?: Agent;
}

/** A real server on a real database, and its URL. */
async function start({ path = ":memory:", agent = createDataAnalyst() }: Host = {}): Promise<{
  url: string;
  close: () => Promise<void>;
}> {
  const store = await sqliteStore({ path });
  const server = await serve(agent, { port: 0, store, signals: false, logger: false, limits: { bodyBytes: 32 << 20 } });
  let closed: Promise<void> | undefined;
  const close = (): Promise<void> =>
    (closed ??= (async () => {
      await server.close({ grace: 0 });
      await store.close();
    })());
  closers.push(close);
  return { url: server.url, close };
}

async function client(host?: Host, binding = "JSONRPC"): Promise<Client> {
  const { url } = await start(host);
  return connect(url, { binding });
}

async function folder(): Promise<string> {
  const path = await mkdtemp(join(tmpdir(), "analyst-"));
  onTestFinished(() => rm(path, { recursive: true, force: true }));
  return path;
}

interface Place {
  readonly contextId?: string | undefined;
  readonly taskId?: string | undefined;
}

async function send(
  to: Client,
  parts: readonly Part[],
  place: Place = {},
  acceptedOutputModes?: readonly string[],
): Promise<Task> {
  const message = {
    parts,
    ...(place.contextId === undefined ? {} : { contextId: place.contextId }),
    ...(place.taskId === undefined ? {} : { taskId: place.taskId }),
  };
  const configuration = acceptedOutputModes === undefined ? {} : { configuration: { acceptedOutputModes } };
  const { task } = await to.sendMessage({ message, ...configuration });
  if (task === undefined) throw new Error("No task");
  return task;
}

const ask = (to: Client, question: string, place?: Place): Promise<Task> => send(to, [text(question)], place);

describe.each(["JSONRPC", "HTTP+JSON"])("over %s", (binding) => {
  it.each([
    ["weather.csv", "chart average temp_max by month", "Average temp_max by month", 48],
    ["seattle-weather.csv", "plot wind over date", "Wind by date", 1461],
    ["flights-airport.csv", "chart count by origin", "Total count by origin", 30],
  ])("profiles %s and answers “%s” with a picture and its numbers", async (file, question, title, groups) => {
    const to = await client({}, binding);
    const task = await send(to, [text(question), csvPart(file)]);
    expect(task.status.state).toBe("TASK_STATE_COMPLETED");
    expect(dataOf(artifactOf(task, "profile"))).toMatchObject({ table: file });
    const chart = artifactOf(task, "chart");
    expect(chart.name).toBe(title);
    expect(svgOf(chart)).toMatch(/^<svg .*<\/svg>$/s);
    expect(dataOf<{ groups: unknown[] }>(chart).groups).toHaveLength(groups);
    expect(lastWords(task)).toContain(title);
  });

  it("streams its findings piece by piece", async () => {
    const to = await client({}, binding);
    const parts = [text("bar chart of count by weather"), csvPart("weather.csv")];
    const events: StreamResponse[] = [];
    for await (const event of to.sendStreamingMessage({ message: { parts } })) events.push(event);
    const profile = events.flatMap(({ artifactUpdate }) =>
      artifactUpdate?.artifact.artifactId.startsWith("profile") ? [artifactUpdate] : [],
    );
    expect(profile.length).toBe(8);
    expect(profile.map(({ append, lastChunk }) => [append === true, lastChunk === true])).toEqual([
      [false, false],
      ...Array.from({ length: 6 }, () => [true, false]),
      [true, true],
    ]);
    expect(events.at(-1)?.statusUpdate?.status.state).toBe("TASK_STATE_COMPLETED");
  });
});

describe("a conversation", () => {
  it("remembers the table for later questions, even after a restart of the server", async () => {
    const path = join(await folder(), "store.db");
    const first = await start({ path });
    const { contextId } = await send(await connect(first.url), [csvPart("weather.csv")]);
    const before = await ask(await connect(first.url), "chart average wind by weather", { contextId });
    await first.close();
    const second = await start({ path });
    const after = await ask(await connect(second.url), "chart average wind by weather", { contextId });
    expect(after.id).not.toBe(before.id);
    expect(artifactOf(after, "chart")).toEqual(artifactOf(before, "chart"));
    expect(dataOf(artifactOf(after, "chart"))).toMatchObject({ table: "weather.csv", rowsRead: 2922 });
  });

  it("takes the newest table, and keeps conversations apart", async () => {
    const to = await client();
    const { contextId } = await send(to, [csvPart("weather.csv")]);
    await send(to, [csvPart("flights-airport.csv")], { contextId });
    expect(dataOf(artifactOf(await ask(to, "show the first 3 rows", { contextId }), "rows"))).toEqual({
      table: "flights-airport.csv",
      columns: ["origin", "destination", "count"],
      rows: [
        ["ABE", "ATL", "853"],
        ["ABE", "BHM", "1"],
        ["ABE", "CLE", "805"],
      ],
    });
    const other = await ask(to, "chart count by origin");
    expect(other.status.state).toBe("TASK_STATE_INPUT_REQUIRED");
    expect(lastWords(other)).toContain("Send me a table");
  });

  it("keeps the last good table when the next file is not a table", async () => {
    const to = await client();
    const { contextId } = await send(to, [csvPart("weather.csv")]);
    const refused = await send(to, [csvPart("page.csv", "<html></html>")], { contextId });
    expect(refused.status.state).toBe("TASK_STATE_REJECTED");
    expect((await ask(to, "chart count by weather", { contextId })).status.state).toBe("TASK_STATE_COMPLETED");
  });

  it("answers the question once the table arrives", async () => {
    const to = await client();
    const waiting = await ask(to, "chart count by weather");
    expect(waiting.status.state).toBe("TASK_STATE_INPUT_REQUIRED");
    const task = await send(to, [csvPart("weather.csv")], { taskId: waiting.id, contextId: waiting.contextId });
    expect(task.id).toBe(waiting.id);
    expect(artifactOf(task, "chart").name).toBe("Number of rows by weather");
  });

  it("answers a message that arrived during its work, in the same task", async () => {
    const to = await client();
    const { contextId } = await send(to, [csvPart("levels.csv", largeCsv(25_000))]);
    const stream = to.sendStreamingMessage({
      message: { contextId: contextId ?? "", parts: [text("chart average level by station")] },
    });
    let second: Promise<Task> | undefined;
    const { task } = await collect(
      (async function* () {
        for await (const event of stream) {
          yield event;
          const taskId = event.task?.id;
          if (taskId !== undefined && second === undefined) {
            second = ask(to, "chart average level by month", { contextId, taskId });
            second.catch(() => {});
          }
        }
      })(),
    );
    await second;
    const whole = await to.getTask(task?.id ?? "");
    expect(whole.artifacts?.map(({ name }) => name)).toEqual(["Average level by station", "Average level by month"]);
  });
});

describe("questions back to the user", () => {
  it("asks which column, and continues with the answer in the same task", async () => {
    const to = await client();
    const asked = await send(to, [text("chart temp by foo"), csvPart("weather.csv")]);
    expect(asked.status.state).toBe("TASK_STATE_INPUT_REQUIRED");
    expect(lastWords(asked)).toContain("1. temp_max\n2. temp_min");
    const place = { taskId: asked.id, contextId: asked.contextId };
    const again = await ask(to, "the blue one", place);
    expect(again.status.state).toBe("TASK_STATE_INPUT_REQUIRED");
    expect(lastWords(again)).toMatch(/^That is none of these\. Which column do you mean by “temp”/);
    const more = await ask(to, "both", place);
    expect(lastWords(more)).toContain("no column like “foo”");
    const done = await ask(to, "2", place);
    expect(done.id).toBe(asked.id);
    expect(done.status.state).toBe("TASK_STATE_COMPLETED");
    expect(done.artifacts?.filter(({ name }) => name?.startsWith("Profile"))).toHaveLength(1);
    expect(artifactOf(done, "chart").name).toBe("Average temp_max and average temp_min by date");
  });

  it("continues after a restart in between, with the same table", async () => {
    const path = join(await folder(), "store.db");
    const first = await start({ path });
    const to = await connect(first.url);
    const asked = await send(to, [text("chart temp by weather"), csvPart("weather.csv")]);
    await send(to, [csvPart("flights-airport.csv")], { contextId: asked.contextId });
    await first.close();
    const second = await start({ path });
    const done = await ask(await connect(second.url), "temp_min", { taskId: asked.id, contextId: asked.contextId });
    expect(artifactOf(done, "chart").name).toBe("Average temp_min by weather");
  });

  it("accepts another question as an answer, too", async () => {
    const to = await client();
    const asked = await send(to, [text("chart temp by month"), csvPart("weather.csv")]);
    const done = await ask(to, "chart total precipitation by year", { taskId: asked.id, contextId: asked.contextId });
    expect(artifactOf(done, "chart").name).toBe("Total precipitation by year");
  });

  it("suggests questions if it does not understand one", async () => {
    const to = await client();
    const { contextId } = await send(to, [text("here you are"), csvPart("seattle-weather.csv")]);
    const asked = await ask(to, "flabbergast", { contextId });
    expect(asked.status.state).toBe("TASK_STATE_INPUT_REQUIRED");
    const done = await ask(to, "1", { contextId, taskId: asked.id });
    expect(artifactOf(done, "chart").name).toBe("Average precipitation by month");
  });

  it("says in metadata what programs need to answer", async () => {
    const to = await client();
    const asked = await send(to, [text("chart temp by month"), csvPart("weather.csv")]);
    expect(asked.status.message?.metadata).toMatchObject({
      pending: { ask: { choices: [{ value: "temp_max" }, { value: "temp_min" }] } },
    });
  });
});

describe("answers without a task", () => {
  it.each(["help", "hi", "what can you do?", "make me a sandwich"])("“%s” gets only text", async (question) => {
    const { message, task } = await (await client()).sendMessage(question);
    expect(task).toBeUndefined();
    expect(message?.parts[0]?.text).toContain("chart average temp_max by month");
  });
});

describe("output modes that the caller accepts", () => {
  it.each([
    [["application/json"], ["application/json", "text/plain"]],
    [["text/plain"], ["text/plain"]],
    [["image/svg+xml"], ["image/svg+xml"]],
    [["image/*", "text/markdown"], ["image/svg+xml"]],
    [["*/*"], ["image/svg+xml", "application/json"]],
  ])("of %j gets %j", async (modes, types) => {
    const task = await send(await client(), [text("chart count by weather"), csvPart("weather.csv")], {}, modes);
    expect(artifactOf(task, "chart").parts.map(({ mediaType }) => mediaType)).toEqual(types);
  });
});

describe("rejected input", () => {
  it.each<[string, readonly Part[], RegExp]>([
    ["a web page", [csvPart("a.csv", "<!doctype html><html></html>")], /web page.*fields separated by commas/],
    ["JSON", [csvPart("a.csv", '{"a":1}')], /JSON, not CSV/],
    ["an empty file", [csvPart("a.csv", " ")], /empty/],
    ["bytes", [csvPart("a.csv", new Uint8Array([0, 1, 2, 0, 5]))], /binary/],
    ["sentences", [csvPart("a.csv", "one\ntwo words\nthree\n")], /no columns/],
    ["two files", [csvPart("weather.csv"), csvPart("flights-airport.csv")], /one table at a time/],
  ])("%s: rejected, with a helpful message", async (_, parts, words) => {
    const task = await send(await client(), [text("chart a by b"), ...parts]);
    expect(task.status.state).toBe("TASK_STATE_REJECTED");
    expect(lastWords(task)).toMatch(words);
    expect(task.artifacts ?? []).toEqual([]);
  });

  it("a file that breaks half-way: failed, with the position", async () => {
    const broken = `a,b\n${"1,2\n".repeat(80_000)}3,"open\n${"4,5\n".repeat(10)}`;
    const task = await send(await client(), [csvPart("a.csv", broken)]);
    expect(task.status.state).toBe("TASK_STATE_FAILED");
    expect(lastWords(task)).toContain("after row 80000 is never closed");
  });
});

describe("files by URL", () => {
  async function site(): Promise<{ url: string; hits: () => number; change: (body: Uint8Array) => void }> {
    let body = dataset("seattle-weather.csv");
    let hits = 0;
    const server = createServer((request, response) => {
      hits += 1;
      if (request.url === "/moved.csv") response.writeHead(302, { location: "/weather.csv" }).end();
      else if (request.url?.endsWith(".csv") === true)
        response.writeHead(200, { "content-type": "text/csv" }).end(body);
      else response.writeHead(404).end("gone");
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    closers.push(() => new Promise((resolve) => server.close(resolve)));
    return {
      url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
      hits: () => hits,
      change: (next) => {
        body = next;
      },
    };
  }
  const open = (): Agent => createDataAnalyst({ fetch: guardedFetch({ allowPrivate: true }, nodeDialer()) });

  it("are fetched, and fetched again for a later question", async () => {
    const { url } = await site();
    const to = await client({ agent: open() });
    const task = await send(to, [text("chart average wind by month"), { url: `${url}/data/weather.csv` }]);
    expect(dataOf(artifactOf(task, "chart"))).toMatchObject({ table: "weather.csv", rowsRead: 1461 });
    const later = await ask(to, "chart count by weather", { contextId: task.contextId });
    expect(dataOf(artifactOf(later, "chart"))).toMatchObject({ rowsRead: 1461 });
  });

  it.each([
    ["/nothing", "status 404"],
    ["/moved.csv", "do not follow redirects"],
  ])("%s: failed, with the reason", async (path, words) => {
    const { url } = await site();
    const task = await send(await client({ agent: open() }), [{ url: `${url}${path}` }]);
    expect(task.status.state).toBe("TASK_STATE_FAILED");
    expect(lastWords(task)).toContain(words);
  });

  it("are rejected at addresses of this machine and its network, without a request", async () => {
    const { url, hits } = await site();
    const to = await client();
    for (const address of [
      `${url}/weather.csv`,
      "http://169.254.169.254/latest.csv",
      "http://localhost/a.csv",
      "file:///etc/passwd",
    ]) {
      const task = await send(to, [{ url: address }]);
      expect(task.status.state).toBe("TASK_STATE_REJECTED");
      expect(lastWords(task)).toMatch(/I do not fetch that file\. Address refused/);
    }
    expect(hits()).toBe(0);
  });

  it.each(["weather.csv", "http://", "http://[::1/a.csv", "not\na url"])(
    "are named if %j is not a URL",
    async (url) => {
      const task = await send(await client({ agent: open() }), [{ url }]);
      expect(task.status.state).toBe("TASK_STATE_REJECTED");
      expect(lastWords(task)).toContain(`“${url.replace("\n", " ")}” is not a URL`);
    },
  );
});

/** Each answer comes from a server by the byte; an error that escapes from a callback would end the server, and the test run. */
describe("files of a misbehaving server", () => {
  const failed = /^(I could not fetch|I asked for that file and got|That address leads to|That file is larger)/;

  it("fail with a safe sentence, and leave the agent able to answer", async () => {
    const fetch = guardedFetch({ allowPrivate: true, timeout: 60_000 }, nodeDialer());
    const to = await client({ agent: createDataAnalyst({ fetch }) });
    await Promise.all(
      strange.map(async ([name, misbehave]) => {
        await using server = await hostile(misbehave);
        const task = await send(to, [{ url: `${server.url}/weather.csv` }]);
        expect([name, task.status.state]).toEqual([
          name,
          expect.stringMatching(/^TASK_STATE_(FAILED|REJECTED|COMPLETED)$/),
        ]);
        if (task.status.state === "TASK_STATE_FAILED")
          expect([name, lastWords(task)]).toEqual([name, expect.stringMatching(failed)]);
      }),
    );
    const fine = await send(to, [csvPart("weather.csv")]);
    expect(fine.status.state).toBe("TASK_STATE_COMPLETED");
  });

  it("fail within the timeout of the call, however long they continue", async () => {
    const fetch = guardedFetch({ allowPrivate: true, timeout: 300, maxBytes: 1 << 20 }, nodeDialer());
    const to = await client({ agent: createDataAnalyst({ fetch }) });
    await Promise.all(
      unending.map(async ([name, misbehave]) => {
        await using server = await hostile(misbehave);
        const task = await send(to, [{ url: `${server.url}/weather.csv` }]);
        expect([name, task.status.state]).toEqual([name, expect.stringMatching(/^TASK_STATE_(FAILED|REJECTED)$/)]);
      }),
    );
  });
});

describe("tables in other parts", () => {
  it("arrive as text of type text/csv", async () => {
    const table = text("day,level\n2020-01-01,1\n2020-01-02,3\n", { mediaType: "text/csv; charset=utf-8" });
    const task = await send(await client(), [text("plot level over day"), table]);
    expect(dataOf(artifactOf(task, "chart"))).toMatchObject({
      groups: [{ values: { level: 1 } }, { values: { level: 3 } }],
    });
  });

  it("do not arrive as JSON", async () => {
    const to = await client({ agent: { ...createDataAnalyst(), defaultInputModes: ["*/*"] } });
    const task = await send(to, [text("chart a by b"), data([{ a: 1, b: 2 }])]);
    expect(task.status.state).toBe("TASK_STATE_REJECTED");
    expect(lastWords(task)).toContain("as a file, or as text of type text/csv");
  });
});

describe("a large file", () => {
  it("can be canceled half-way, and the work stops", async () => {
    const analyst = createDataAnalyst();
    let steps = 0;
    let ended: (() => void) | undefined;
    const over = new Promise<void>((resolve) => {
      ended = resolve;
    });
    const watched: Agent = {
      ...analyst,
      execute: (turn) => {
        const output = analyst.execute(turn) as AsyncGenerator<never, void, void>;
        return (async function* () {
          try {
            for await (const yielded of output) {
              steps += 1;
              yield yielded;
            }
          } finally {
            ended?.();
          }
        })();
      },
    };
    const to = await client({ agent: watched });
    const stream = to.sendStreamingMessage({
      message: { parts: [text("chart average level by month"), csvPart("levels.csv", largeCsv(120_000))] },
    });
    let state: string | undefined;
    let taskId = "";
    for await (const event of stream) {
      taskId ||= event.task?.id ?? "";
      state = event.statusUpdate?.status.state ?? state;
      const words = event.statusUpdate?.status.message?.parts[0]?.text ?? "";
      if (words.startsWith("Profiling: 20,000"))
        expect((await to.cancelTask(taskId)).status.state).toBe("TASK_STATE_CANCELED");
    }
    expect(state).toBe("TASK_STATE_CANCELED");
    await over;
    // Undisturbed, the profile alone sends more than ten progress messages.
    expect(steps).toBeLessThan(10);
    const task = await to.getTask(taskId);
    expect(task.artifacts ?? []).toEqual([]);
  });

  it("is processed with progress, and the server answers others meanwhile", async () => {
    const { url } = await start();
    const to = await connect(url);
    const stream = to.sendStreamingMessage({
      message: { parts: [text("chart average level by month"), csvPart("levels.csv", largeCsv(60_000))] },
    });
    let answered = 0;
    let progress = 0;
    for await (const event of stream) {
      if (event.statusUpdate?.status.message?.parts[0]?.text?.includes("rows so far") !== true) continue;
      progress += 1;
      const { message } = await (await connect(url)).sendMessage("help");
      if (message !== undefined) answered += 1;
    }
    expect(progress).toBe(6);
    expect(answered).toBe(progress);
  });
});
