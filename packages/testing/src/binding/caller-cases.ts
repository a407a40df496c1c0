import { A2AError } from "@parley/a2a/internal/model/index";
import type { Authenticator } from "@parley/a2a/internal/auth/index";
import { before, errorOf, itemsOf, obedient, saying, type ContractCases } from "./given.ts";

/** Callers are who they say, in the header `x-name`. */
export const byName: Authenticator = {
  securitySchemes: { name: { apiKeySecurityScheme: { location: "header", name: "x-name" } } },
  securityRequirements: [{ schemes: { name: { list: [] } } }],
  authenticate(request) {
    const subject = request.header("x-name");
    if (subject !== undefined) return { subject };
    throw new A2AError("Unauthenticated", undefined, { challenge: "Name" });
  },
};

/** Who calls, for which agent, in which words. */
export const callerCases: ContractCases = {
  "who is not known is refused with the challenge (§7.4), on streams too": async ({ serve, expect }) => {
    const served = await serve({ options: { authenticator: byName } });
    const refused = await errorOf(served.call("SendMessage", saying("reply")));
    expect([refused.code, refused.challenge]).toEqual(["Unauthenticated", "Name"]);
    const stream = await errorOf(served.stream("SendStreamingMessage", saying("reply")));
    expect(stream.code).toEqual("Unauthenticated");
  },

  "a task is its owner's: to others it does not exist": async ({ serve, expect }) => {
    const served = await serve({ options: { authenticator: byName }, headers: { "x-name": "ada" } });
    const { task } = await served.call("SendMessage", saying("chunks 1"));
    const id = task?.id ?? "";
    expect((await served.call("GetTask", { id })).id).toEqual(id);
    const bob = served.service(undefined, { headers: { "x-name": "bob" } });
    expect((await errorOf(bob.call("GetTask", { id }, served.context()))).code).toEqual("TaskNotFound");
  },

  "the version, the extensions and the trace of a call reach the service, and what was activated comes back (§3.2.6)":
    async ({ serve, expect }) => {
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

  "a page of another origin is refused where hosts are named": async ({ serve, expect }) => {
    const served = await serve({
      options: { allowedHosts: ["agents.example"] },
      headers: { origin: "https://evil.example" },
    });
    expect((await errorOf(served.call("SendMessage", saying("reply")))).code).toEqual("PermissionDenied");
  },
};

/** For versions whose requests can name a tenant (A2A 1.0 §8.3.2). */
export const tenantCases: ContractCases = {
  "agents that share an address are told apart by their tenant, and no other is there": async ({ serve, expect }) => {
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
  "a version that the server does not speak is refused (§3.6)": async ({ serve, expect }) => {
    const other = (await serve()).version < "1" ? "1.0" : "0.3";
    const served = await serve({ options: { versions: [other] } });
    const target = { ...served.target(0, other), protocolVersion: served.version };
    const service = served.service(target);
    const { code } = await errorOf(service.call("SendMessage", saying("reply"), served.context()));
    // Where a version has methods of its own, as with gRPC, they are not there.
    expect(["VersionNotSupported", "MethodNotFound", "UnsupportedOperation"].includes(code)).toEqual(true);
  },
};
