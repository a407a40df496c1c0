import { afterEach, describe, expect, test, vi } from "vitest";
import { connect, type ConnectOptions } from "../../src/client/index.ts";
import { cardOf, deadUrl, errorOf as thrownBy, jsonRpcAt, restAt } from "./support.ts";

/* A page cannot tell that CORS made its request fail: `fetch` throws a plain TypeError (Fetch §5.6), as if the server were down. */

const agent = "http://agent.example:4000";
const hint = 'If the server runs, CORS may refuse this page: set its option cors: { origins: ["https://app.example"] }';

/** Makes requests fail as they do in a browser. */
const blocked: ConnectOptions = {
  retry: false,
  fetch: () => Promise.reject(new TypeError("Failed to fetch")),
};

const errorOf = async (call: Promise<unknown>): Promise<Error> => (await thrownBy(call)) as Error;

const onPage = (origin: string): void => void vi.stubGlobal("location", { origin });

afterEach(() => void vi.unstubAllGlobals());

describe("a page whose request fails without a reason", () => {
  test("learns on connecting which server option allows its requests", async () => {
    onPage("https://app.example");
    const error = await errorOf(connect(agent, blocked));
    expect(error).toMatchObject({ code: "ConnectionFailed", cause: expect.any(TypeError) });
    expect(error.message).toContain(`No answer from ${agent}/.well-known/agent-card.json: Failed to fetch. `);
    expect(error.message).toContain(hint);
  });

  test.each([
    ["JSON-RPC", jsonRpcAt(agent)],
    ["REST", restAt(agent)],
  ])("learns this from calls and streams over %s", async (_, at) => {
    onPage("https://app.example");
    const client = await connect(cardOf([at]), { ...blocked, reconnect: false });
    expect((await errorOf(client.getTask("t1"))).message).toContain(hint);
    expect((await errorOf(client.sendStreamingMessage("hi").opened())).message).toContain(hint);
  });

  test("gets no such hint for its own origin, to which CORS does not apply", async () => {
    onPage(agent);
    expect((await errorOf(connect(agent, blocked))).message).not.toContain("CORS");
  });
});

describe("programs that are not pages", () => {
  test("get no hint about CORS", async () => {
    expect((await errorOf(connect(agent, blocked))).message).not.toContain("CORS");
  });

  test("get the reason that their runtime knows, even with a location", async () => {
    onPage("https://app.example");
    const error = await errorOf(connect(await deadUrl(), { retry: false }));
    expect(error.message).toContain("ECONNREFUSED");
    expect(error.message).not.toContain("CORS");
  });
});
