import { describe, expect, test } from "vitest";
import { text } from "../../src/index.ts";
import { agentOf, asked, posted, rest, serving } from "./support.ts";

const secret = "MARK-secret-4711";

describe("turn.authorize()", () => {
  test("asks with a link, keeps the stream open, and gives the secret to the agent (A2A 1.0 §7.6.1)", async () => {
    let got: string | undefined;
    const served = serving(
      agentOf(async function* (turn) {
        got = yield* turn.authorize({ form: "secret", reason: "The key of your shop", label: "API key" });
        yield turn.artifact({ parts: [text("bought")] });
      }),
    );
    const events = (await served.client()).sendStreamingMessage("Buy bread")[Symbol.asyncIterator]();
    const { request, taskId } = await asked(events);
    expect(request).toMatchObject({
      form: "secret",
      url: expect.stringContaining("https://agents.example.com/.well-known/"),
    });
    const page = await served.fetch(request.url ?? "");
    expect(page.status).toBe(200);
    expect(await page.text()).toContain("API key");
    expect((await posted(served, request, { decision: "give", secret })).status).toBe(200);
    expect(await rest(events)).toEqual(["WORKING", "bought", "COMPLETED"]);
    expect(got).toBe(secret);
    expect(JSON.stringify(await (await served.client()).getTask(taskId))).not.toContain(secret);
    expect(served.log.join("\n")).not.toContain(secret);
    expect(await served.store.features({ agent: "/" }, taskId, "authorization")).toEqual([]);
  });
});
