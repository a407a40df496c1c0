import { describe, expect, it, vi } from "vitest";
import { newTask } from "./harness/bodies.ts";
import { hostile, oddHeads } from "./harness/hostile.ts";
import { tasksOf } from "./harness/reading.ts";
import { servers } from "./harness/servers.ts";
import { withstands } from "./harness/withstand.ts";

/* Attacks on an agent that fetches its caller's URL: the data analyst of the examples against hostile file servers. */

const attacked = servers();
const files = hostile();
const mounts = [{ agent: "actor" }, { agent: "analyst", path: "/analyst" }] as const;

describe("the data analyst", () => {
  it("ends each task whose file server answers with an invalid head, and keeps serving", async () => {
    const server = await attacked.start({ mounts });
    const url = `${server.url}/analyst`;
    await withstands(server, async (other) => {
      const sources = await Promise.all(oddHeads.map(([, talk]) => files.raw(talk)));
      for (const source of sources) {
        const part = { url: `${source}/table.csv`, mediaType: "text/csv" };
        await newTask(url, { words: "profile", part, returnImmediately: true });
      }
      await vi.waitFor(async () => {
        const states = (await tasksOf(url)).map(({ status }) => status.state);
        expect(states).toEqual(oddHeads.map(() => expect.stringMatching(/_(FAILED|REJECTED)$/)));
      }, 30_000);
      await other.answers(3);
    });
  });
});
