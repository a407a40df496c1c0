import type { ContractCases } from "./given.ts";

const page = "https://app.example";
const init = (method: string, headers: Readonly<Record<string, string>>) =>
  ({ method, headers, signal: new AbortController().signal, redirect: "manual" }) as const;

/** What browsers need of a binding over HTTP. */
export const httpCases: ContractCases = {
  "a page of another origin may ask first, and is answered by the list (CORS)": async ({ serve, expect }) => {
    const served = await serve({ options: { cors: { origins: [page] } } });
    const ask = async (origin: string) =>
      served.fetch(
        served.target().url,
        init("OPTIONS", {
          origin,
          "access-control-request-method": "POST",
          "access-control-request-headers": "a2a-version",
        }),
      );
    const allowed = await ask(page);
    expect([allowed.status, allowed.headers.get("access-control-allow-origin")]).toEqual([204, page]);
    expect(allowed.headers.get("access-control-allow-headers")?.includes("last-event-id")).toEqual(true);
    const refused = await ask("https://evil.example");
    expect(refused.headers.get("access-control-allow-origin")).toEqual(null);
  },

  "a method that the address does not take is refused in the protocol's words": async ({ serve, expect }) => {
    const served = await serve();
    const answer = await served.fetch(served.target().url, init("PUT", {}));
    expect([404, 405].includes(answer.status)).toEqual(true);
    expect("error" in ((await answer.json()) as object)).toEqual(true);
  },
};
