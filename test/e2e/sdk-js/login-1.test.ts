import { Role, type SendMessageRequest } from "@a2a-js/sdk";
import {
  ClientFactory,
  createAuthenticatingFetchWithRetry,
  DefaultAgentCardResolver,
  JsonRpcTransportFactory,
  RestTransportFactory,
  type HttpHeaders,
} from "@a2a-js/sdk/client";
import { defineAgent, memoryStore, serve, type Server } from "@parley/node";
import { jwt } from "@parley/a2a/auth";
import { allowInsecureRequests, processResourceDiscoveryResponse, resourceDiscoveryRequest } from "oauth4webapi";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { clientToken } from "../../identity/logins.ts";
import { startProvider, type TestProvider } from "../../identity/provider.ts";

/** The official client logs in to our server: the server rejects it, and it follows the challenge to the issuer and returns with a token. */

const agent = defineAgent({
  name: "Mirror",
  description: "Says who calls",
  version: "1.0.0",
  skills: [{ id: "who", name: "Who", description: "Says who calls", tags: [] }],
  onMessage: (turn) => turn.reply(`You are ${turn.principal.subject}`),
});

const question: SendMessageRequest = {
  tenant: "",
  message: {
    messageId: "1",
    contextId: "",
    taskId: "",
    role: Role.ROLE_USER,
    parts: [{ metadata: {}, filename: "", mediaType: "", content: { $case: "text", value: "who" } }],
    metadata: {},
    extensions: [],
    referenceTaskIds: [],
  },
  configuration: undefined,
  metadata: {},
};

let provider: TestProvider;
let server: Server;
beforeAll(async () => {
  provider = await startProvider();
  server = await serve([{ agent, path: "/mirror" }], {
    port: 0,
    grpc: true,
    signals: false,
    logger: false,
    store: memoryStore(),
    authenticator: jwt({ issuer: provider.issuer, scopes: ["chat"] }),
  });
});
afterAll(async () => {
  await server.close({ grace: 0 });
  await provider.close();
});

/** The resource metadata that a challenge names, as oauth4webapi reads it (RFC 9728 §3.3). */
async function resourceOf(
  challenge: string,
  called: string,
): Promise<{ resource: string; issuer: string; scope: string }> {
  const metadata = /resource_metadata="([^"]+)"/.exec(challenge)?.[1];
  const resource = new URL(called);
  const answer = await resourceDiscoveryRequest(resource, { [allowInsecureRequests]: true });
  expect(metadata).toBe(answer.url);
  const { authorization_servers: issuers, scopes_supported: scopes } = await processResourceDiscoveryResponse(
    resource,
    answer,
  );
  return { resource: resource.href, issuer: issuers?.[0] ?? "", scope: scopes?.join(" ") ?? "" };
}

describe("createAuthenticatingFetchWithRetry() of the SDK", () => {
  it.each(["JSONRPC", "HTTP+JSON"])(
    "authenticates by the challenge alone, over %s (RFC 9728 §5.1)",
    async (binding) => {
      const answers: (readonly [number, string])[] = [];
      const agentUrl = `${server.url}/mirror`;
      const fetching = createAuthenticatingFetchWithRetry(fetch, {
        headers: () => Promise.resolve({}),
        async shouldRetryWithHeaders(_request, { status, headers }): Promise<HttpHeaders | undefined> {
          const challenge = headers.get("www-authenticate") ?? "";
          answers.push([status, challenge.split(" ", 1)[0] ?? ""]);
          if (status !== 401) return undefined;
          const { issuer, resource, scope } = await resourceOf(challenge, agentUrl);
          return { authorization: `Bearer ${await clientToken({ issuer }, { resource, scope })}` };
        },
      });
      const factory = new ClientFactory({
        transports: [
          new JsonRpcTransportFactory({ fetchImpl: fetching }),
          new RestTransportFactory({ fetchImpl: fetching }),
        ],
        preferredTransports: [binding],
        cardResolver: new DefaultAgentCardResolver({ fetchImpl: fetch }),
      });
      const client = await factory.createFromUrl(`${agentUrl}/`);
      const answer = await client.sendMessage(question);
      expect(JSON.stringify(answer)).toContain("You are service");
      expect(answers).toEqual([[401, "Bearer"]]);
    },
  );
});
