import { A2AError } from "@parley/a2a/internal/model/index";
import type { Authenticator } from "@parley/a2a/internal/auth/index";
import { before, type ContractCases, errorOf, itemsOf, obedient, saying, textsOf } from "./given.ts";

/** Authenticates callers by the name in the header `x-name`. */
export const byName: Authenticator = {
  securitySchemes: { name: { apiKeySecurityScheme: { location: "header", name: "x-name" } } },
  securityRequirements: [{ schemes: { name: { list: [] } } }],
  authenticate(request) {
    const subject = request.header("x-name");
    if (subject !== undefined) return { subject };
    throw new A2AError("Unauthenticated", undefined, { challenge: "Name" });
  },
};

/** Callers, extensions, traces and origins. */
export const callerCases: ContractCases = {
  "calls and streams without valid credentials are rejected with a challenge (§7.4)": async ({ serve, expect }) => {
    const served = await serve({ options: { authenticator: byName } });
    const refused = await errorOf(served.call("SendMessage", saying("reply")));
    expect([refused.code, refused.challenge]).toEqual(["Unauthenticated", "Name"]);
    const stream = await errorOf(served.stream("SendStreamingMessage", saying("reply")));
    expect(stream.code).toEqual("Unauthenticated");
  },

  "other callers cannot see an owner's task": async ({ serve, expect }) => {
    const served = await serve({ options: { authenticator: byName }, headers: { "x-name": "ada" } });
    const { task } = await served.call("SendMessage", saying("chunks 1"));
    const id = task?.id ?? "";
    expect((await served.call("GetTask", { id })).id).toEqual(id);
    const bob = served.service(undefined, { headers: { "x-name": "bob" } });
    expect((await errorOf(bob.call("GetTask", { id }, served.context()))).code).toEqual("TaskNotFound");
  },

  "version, extensions and trace reach the service, and the answer lists the activated extensions (§3.2.6)": async ({
    serve,
    expect,
  }) => {
    const seen: unknown[] = [];
    const watching = before((_, { version, extensions, trace }) => void seen.push([version, extensions, trace]));
    const served = await serve({
      options: {
        interceptors: [
          watching,
          (next) => ({
            call: async (operation, request, context) => ({
              ...(await next.call(operation, request, context)),
              extensions: ["urn:a"],
            }),
            stream: async (operation, request, context) => ({
              ...(await next.stream(operation, request, context)),
              extensions: ["urn:a", "urn:b"],
            }),
          }),
        ],
      },
    });
    const context = {
      extensions: ["urn:a", "urn:b"],
      trace: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
    };
    const reply = await served.service().call("SendMessage", saying("reply"), served.context(context));
    expect(reply.extensions).toEqual(["urn:a"]);
    const stream = await served.stream("SendStreamingMessage", saying("chunks 1"), context);
    await itemsOf(stream);
    expect(stream.extensions).toEqual(["urn:a", "urn:b"]);
    const told = [served.version, context.extensions, context.trace];
    expect(seen).toEqual([told, told]);
  },

  "with allowedHosts, pages of other origins are rejected": async ({ serve, expect }) => {
    const served = await serve({
      options: { allowedHosts: ["agents.example"] },
      headers: { origin: "https://evil.example" },
    });
    expect((await errorOf(served.call("SendMessage", saying("reply")))).code).toEqual("PermissionDenied");
  },
};

/** For versions with tenants in requests (A2A 1.0 §8.3.2). */
export const tenantCases: ContractCases = {
  "agents at the same address are distinguished by tenant, and an unknown tenant is rejected": async ({
    serve,
    expect,
  }) => {
    const served = await serve({
      agents: [
        { agent: obedient(undefined, "Acme"), tenant: "acme" },
        { agent: obedient(undefined, "Bolt"), tenant: "b/ö lt" },
      ],
    });
    for (const [at, name] of ["Acme", "Bolt"].entries()) {
      const target = served.target(at);
      const request = { ...saying("reply"), ...(target.tenant !== undefined && { tenant: target.tenant }) };
      const { payload } = await served.service(target).call("SendMessage", request, served.context());
      expect(payload.value.message?.parts[0]?.text).toEqual(`${name}: reply`);
    }
    const nobody = served.service().call("SendMessage", { ...saying("reply"), tenant: "nobody" }, served.context());
    const error = await errorOf(nobody);
    expect([error.code, error.fields.map(({ field }) => field)]).toEqual(["InvalidParams", ["tenant"]]);
  },
};

/** For bindings that speak both versions. */
export const versionCases: ContractCases = {
  "an unsupported version is rejected (§3.6)": async ({ serve, expect }) => {
    const other = (await serve()).version < "1" ? "1.0" : "0.3";
    const served = await serve({ options: { versions: [other] } });
    const target = { ...served.target(0, other), protocolVersion: served.version };
    const service = served.service(target);
    const { code } = await errorOf(service.call("SendMessage", saying("reply"), served.context()));
    // In gRPC each version has its own methods, so the methods of an unsupported version are unknown.
    expect(["VersionNotSupported", "MethodNotFound", "UnsupportedOperation"].includes(code)).toEqual(true);
  },
};

/** Limits. The server checks them before any other work. */
export const limitCases: ContractCases = {
  "a request above the size limit is rejected, and one below it is accepted": async ({ serve, expect }) => {
    const served = await serve({ options: { limits: { bodyBytes: 20_000 } } });
    const refused = await errorOf(served.call("SendMessage", saying(`reply ${"x".repeat(30_000)}`)));
    expect(refused.code).toEqual("RequestTooLarge");
    const { message } = await served.call("SendMessage", saying(`reply ${"x".repeat(10_000)}`));
    expect(message?.parts[0]?.text?.length).toEqual(10_000 + "Obedient: reply ".length);
  },

  "a request that is nested too deeply is rejected": async ({ serve, expect }) => {
    const served = await serve({ options: { limits: { depth: 20 } } });
    let data: object = {};
    for (let depth = 0; depth < 30; depth++) data = { data };
    const refused = await errorOf(served.call("SendMessage", saying("", { parts: [{ text: "reply" }, { data }] })));
    expect(["InvalidRequest", "InvalidParams", "ParseError"].includes(refused.code)).toEqual(true);
  },

  "a large answer arrives whole": async ({ serve, expect }) => {
    const { task } = await (await serve()).call("SendMessage", saying("large 600000"));
    expect(textsOf(task ?? {}).map((text) => text?.length)).toEqual([600_000]);
  },

  "the client rejects an answer above its size limit": async ({ serve, expect }) => {
    const served = await serve({ limits: { maxResponseBytes: 10_000, maxEventBytes: 10_000 } });
    expect((await errorOf(served.call("SendMessage", saying("large 60000")))).code).toEqual("InvalidResponse");
  },
};

const page = "https://app.example";
const init = (method: string, headers: Readonly<Record<string, string>>) =>
  ({ method, headers, signal: new AbortController().signal, redirect: "manual" }) as const;

/** Rules for browsers. */
export const httpCases: ContractCases = {
  "preflight requests are answered according to the allowed origins (CORS)": async ({ serve, expect }) => {
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

  "an unsupported HTTP method gets an error of the protocol": async ({ serve, expect }) => {
    const served = await serve();
    const answer = await served.fetch(served.target().url, init("PUT", {}));
    expect([404, 405].includes(answer.status)).toEqual(true);
    expect("error" in ((await answer.json()) as object)).toEqual(true);
  },
};
