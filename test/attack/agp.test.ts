import { connect, serve, silentLogger, type DelegateClient } from "@parley/node";
import { bearer } from "@parley/a2a/auth";
import { agentGateway, agp, gatewayAgent, intentPart } from "@parley/extensions/agp";
import type { JsonObject } from "@parley/a2a/model";
import { describe, expect, it, onTestFinished } from "vitest";

/*
 * Attacks on an AGP gateway ("Announcements", "Routing" and "Intents" of its page): announcements of others' paths, messages that claim
 * a route for themselves, and names of prototype members.
 */

const clean = (): void => {
  for (const name of ["polluted", "routes", "cost", "dataModel"]) expect(({} as JsonObject)[name]).toBeUndefined();
};

describe("a gateway", () => {
  const [ada, mallory] = ["token-of-ada-0123456789", "token-of-mallory-0123456789"];
  /** Creates an agent that records its input. */
  const squad = (name: string, got: string[]): DelegateClient => {
    const refuses = (): Promise<never> => Promise.reject(new Error("It cannot"));
    return {
      card: { name, capabilities: {}, supportedInterfaces: [] },
      sendMessage: async ({ message }) => {
        got.push(name);
        return { message: { messageId: message.messageId, role: "ROLE_AGENT", parts: [{ text: name }] } };
      },
      getTask: refuses,
      listTasks: refuses,
      cancelTask: refuses,
      sendStreamingMessage: () => {
        throw new Error("It cannot");
      },
      subscribeToTask: () => {
        throw new Error("It cannot");
      },
    };
  };

  async function opened() {
    const got: string[] = [];
    const gateway = agentGateway({
      name: "Corporate",
      routes: [{ capability: "pay", version: "1", cost: 5, policy: { security_level: 5 }, path: "ada/safe" }],
      policy: { mayAnnounce: ({ subject }, { path }) => path.startsWith(`${subject}/`) },
    });
    const agent = gatewayAgent({ gateway, agentAt: (path) => squad(path, got) });
    const server = await serve(agent, {
      port: 0,
      signals: false,
      logger: silentLogger,
      authenticator: bearer({ [ada]: { subject: "ada" }, [mallory]: { subject: "mallory" } }),
    });
    onTestFinished(() => server.close({ grace: 0 }));
    const extension = agp();
    const as = (token: string) =>
      connect(server.url, { extensions: [extension], headers: { authorization: `Bearer ${token}` } });
    /** Calls a method with raw JSON parameters. */
    const raw = async (method: string, params: string, token = mallory) => {
      const response = await fetch(server.url, {
        method: "POST",
        headers: {
          "content-type": "application/json",
          "a2a-version": "1.0",
          "a2a-extensions": extension.uri,
          authorization: `Bearer ${token}`,
        },
        body: `{"jsonrpc":"2.0","id":1,"method":"${method}","params":${params}}`,
      });
      return (await response.json()) as { readonly result?: JsonObject; readonly error?: JsonObject };
    };
    return { gateway, got, as, raw, extension, url: server.url };
  }

  it("accepts no announcement from a caller without permission for its path", async () => {
    const { raw, as, got, extension } = await opened();
    const announcement = { capability: "pay", version: "1", cost: 0, policy: { security_level: 9 } };
    const paths = ["ada/safe", "ada/x", "mallory", "Mallory/x", "mallory\u0000/x", "", "x".repeat(2000), ["mallory/x"]];
    for (const path of paths) {
      const { result } = await raw("agp/announce", JSON.stringify({ announcement, path }));
      expect(result, String(path).slice(0, 20)).toBeUndefined();
    }
    for (const wrong of [
      { ...announcement, cost: -1 },
      { ...announcement, cost: "0" },
      { ...announcement, policy: [] },
      { ...announcement, policy: { security_level: 9, x: "x".repeat(5000) } },
      { ...announcement, capability: "" },
      { ...announcement, path: "ada/safe" },
      { ...announcement, via: [] },
    ]) {
      expect(
        (await raw("agp/announce", JSON.stringify({ announcement: wrong, path: "mallory/x" }))).result,
      ).toBeUndefined();
    }
    // Tries to withdraw others' routes, by name and by number.
    for (const sequence of [undefined, 0, Number.MAX_SAFE_INTEGER]) {
      const { result } = await raw("agp/withdraw", JSON.stringify({ capability: "pay", path: "ada/safe", sequence }));
      expect(result?.["withdrawn"] ?? false).toBe(false);
    }
    const client = await as(ada);
    const intent = { target_capability: "pay", payload: {}, policy_constraints: { security_level: 5 } };
    await client.sendMessage({ parts: [intentPart(intent)] });
    expect(got).toEqual(["ada/safe"]);
    expect((await client.ext(extension).call("agp/routes", {})).routes).toEqual({
      pay: [{ path: "ada/safe", cost: 5, policy: { security_level: 5 } }],
    });
  });

  it("takes only the routes that it has chosen itself, not those that a message names", async () => {
    const { as, got, extension, url } = await opened();
    const client = await as(mallory);
    const intent = intentPart({ target_capability: "pay", payload: {} });
    const metadata = {
      [`${extension.uri}/paths`]: ["mallory/evil"],
      [`${extension.uri}/alternatives`]: [["mallory/evil"]],
    };
    await client.sendMessage({ parts: [intent], metadata });
    await client.sendMessage({ parts: [intent], metadata: { ...metadata, [`${extension.uri}/via`]: ["x"] } });
    expect(got).toEqual(["ada/safe", "ada/safe"]);
    // Without the extension, the gateway routes nothing.
    const plain = await connect(url, { headers: { authorization: `Bearer ${mallory}` } });
    const { task } = await plain.sendMessage({ parts: [intent], metadata }).catch(() => ({ task: undefined }));
    expect(task?.status.state ?? "refused").not.toBe("TASK_STATE_COMPLETED");
    expect(got).toHaveLength(2);
    // The message has two intents, of which different readers might use different ones.
    const two = client.sendMessage({ parts: [intent, { data: { target_capability: "pay", payload: {} } }] });
    await expect(two).rejects.toMatchObject({ code: "InvalidParams" });
    for (const via of [Array.from({ length: 9 }, (_, at) => `g${at}`), ["Corporate"]]) {
      await expect(
        client.sendMessage({ parts: [intent], metadata: { [`${extension.uri}/via`]: via } }),
      ).rejects.toThrow(/already passed this gateway|too many gateways/);
    }
    expect(got).toHaveLength(2);
  });

  it("treats names of prototypes as names, and constraints without a policy as violations", async () => {
    const { raw, gateway } = await opened();
    for (const name of ["__proto__", "constructor", "toString", "hasOwnProperty"]) {
      const policy = `{"__proto__":{"polluted":1},"constructor":{"prototype":{"polluted":1}}}`;
      const params = `{"announcement":{"capability":"${name}","version":"1","cost":0,"policy":${policy}},"path":"mallory/x"}`;
      expect((await raw("agp/announce", params)).result).toMatchObject({ accepted: true });
      const { result } = await raw("agp/routes", `{"capability":"${name}"}`);
      expect(Object.keys(result?.["routes"] as object)).toEqual([name]);
    }
    clean();
    for (const constraint of ["__proto__", "constructor", "toString", "valueOf"]) {
      const intent = JSON.parse(
        `{"target_capability":"pay","payload":{},"policy_constraints":{"${constraint}":{}}}`,
      ) as never;
      await expect(gateway.route(intent)).rejects.toThrow("No route satisfies");
    }
    for (const level of ["5", null, [5], { valueOf: 5 }, true]) {
      const intent = { target_capability: "pay", payload: {}, policy_constraints: { security_level: level } };
      await expect(gateway.route(intent)).rejects.toThrow("No route satisfies");
    }
  });
});
