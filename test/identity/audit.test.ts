import { connect, defineAgent, memoryStore, serve, silentLogger, type A2AError } from "@parley/node";
import type { AuditRecord } from "@parley/a2a/internal/protocol/index";
import { bearer } from "@parley/a2a/auth";
import { describe, expect, onTestFinished, test } from "vitest";
import { collect } from "../secrets.ts";

/* The server records each rejection once, whatever binding and version the caller uses. */

const agent = defineAgent({
  name: "Vault",
  description: "Keeps things",
  version: "1.0.0",
  skills: [],
  onMessage: (turn) => turn.reply("kept"),
});
const bindings = ["JSONRPC", "HTTP+JSON", "GRPC"] as const;
const versions = ["1.0", "0.3"] as const;
const token = "secret-of-ada-0123456789";
const trace = "0af7651916cd43dd8448eb211c80319c";

describe.each(bindings.flatMap((binding) => versions.map((version) => [binding, version] as const)))(
  "over %s of %s",
  (binding, version) => {
    test("an unauthenticated caller, one without permission, and one over a limit are recorded", async () => {
      const records: AuditRecord[] = [];
      let denies = true;
      const server = await serve(agent, {
        port: 0,
        grpc: true,
        signals: false,
        store: memoryStore(),
        logger: silentLogger,
        authenticator: bearer({ [token]: { subject: "ada", organization: "acme" } }),
        authorizer: () => (denies ? "deny" : "allow"),
        limits: { rate: { principal: { requests: 2, per: 3_600_000 } } },
        audit(record) {
          collect(record);
          records.push(record);
        },
      });
      onTestFinished(() => server.close({ grace: 0 }));
      const ask = async (sent: string): Promise<unknown> => {
        const headers = { authorization: `Bearer ${sent}`, traceparent: `00-${trace}-b7ad6b7169203331-01` };
        const client = await connect(server.url, { binding, version, headers, retry: false });
        return client.sendMessage("hi").then(
          () => "ok",
          (thrown: unknown) => (thrown as A2AError).code,
        );
      };
      expect(await ask("secret-of-nobody-0123456789")).toBe("Unauthenticated");
      expect(await ask(token)).toBe("PermissionDenied");
      denies = false;
      expect(await ask(token)).toBe("ok");
      expect(await ask(token)).toBe("TooManyRequests");
      const common = { outcome: "refused", time: expect.any(Number) as number, address: "127.0.0.1", traceId: trace };
      expect(records).toEqual([
        { ...common, event: "authentication", code: "Unauthenticated" },
        {
          ...common,
          event: "authorization",
          code: "PermissionDenied",
          agent: server.agents[0]?.id,
          operation: "SendMessage",
          subject: "ada",
          organization: "acme",
        },
        { ...common, event: "limit", code: "TooManyRequests", subject: "ada", organization: "acme" },
      ]);
    });
  },
);
