import fc from "fast-check";
import { expect, test } from "vitest";
import { text } from "@parley/a2a/internal/model/index";
import { agentOf, asked, posted, rest, serving } from "./support.ts";

/* Whatever the input to the callback, it gets a response, no exception is thrown, and the task keeps waiting. */

const runs = 300;

const name = fc.constantFrom(
  "request",
  "state",
  "code",
  "error",
  "iss",
  "decision",
  "secret",
  "credential",
  "denied",
  "x",
);
const value = fc.oneof(
  fc.string({ maxLength: 200, unit: "binary" }),
  fc.constantFrom("approve", "deny", "give", "continue", "true", "..", "a.b.c", "access_denied", "{}", "[]"),
  fc.string({ minLength: 20, maxLength: 300 }).map((each) => Buffer.from(each).toString("base64url")),
);
const pairs = fc.array(fc.tuple(name, value), { maxLength: 6 });

test("is answered without a server error, and changes nothing", async () => {
  const served = serving(
    agentOf(async function* (turn) {
      yield* turn.authorize({ form: "secret", reason: "The key" });
      yield turn.artifact({ parts: [text("bought")] });
    }),
  );
  const client = await served.client();
  const events = client.sendStreamingMessage("Buy")[Symbol.asyncIterator]();
  const { request, taskId } = await asked(events);
  const base = request.url?.split("?")[0] ?? "";
  const token = new URL(request.url ?? "").searchParams.get("request") ?? "";
  const hostile = fc.record({
    method: fc.constantFrom("GET", "POST", "POST", "HEAD", "PUT", "DELETE", "OPTIONS"),
    query: pairs,
    form: pairs,
    body: fc.oneof(fc.json(), fc.string({ maxLength: 500, unit: "binary" }), fc.constant(undefined)),
    type: fc.constantFrom(
      "application/json",
      "application/x-www-form-urlencoded",
      "multipart/form-data",
      "text/plain",
      "",
    ),
    cookie: fc.string({ maxLength: 300 }).map((each) => Buffer.from(each).toString("base64")),
    withToken: fc.boolean(),
  });
  await fc.assert(
    fc.asyncProperty(hostile, async ({ method, query, form, body, type, cookie, withToken }) => {
      const search = new URLSearchParams([...query, ...(withToken ? [["request", token]] : [])] as [string, string][]);
      const readable = method === "GET" || method === "HEAD";
      // A valid answer would end the wait.
      const right = (each: URLSearchParams): boolean =>
        each.get("decision") === "deny" || each.get("decision") === "give";
      const fields = new URLSearchParams(form as [string, string][]);
      fc.pre(!right(fields) && !/"(?:credential|denied)"/.test(body ?? ""));
      const response = await served.fetch(`${base}?${search.toString()}`, {
        method,
        headers: { cookie, ...(type !== "" && { "content-type": type }) },
        ...(!readable && { body: body ?? fields.toString() }),
      });
      expect([200, 400, 405, 410]).toContain(response.status);
    }),
    { numRuns: runs },
  );
  expect((await client.getTask(taskId)).status.state).toBe("TASK_STATE_AUTH_REQUIRED");
  expect(served.log.filter((line) => line.startsWith("error"))).toEqual([]);
  await posted(served, request, { decision: "give", secret: "MARK-fuzz-0815" });
  expect((await rest(events)).at(-1)).toBe("COMPLETED");
});
