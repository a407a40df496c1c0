import { A2AError, jsonRpcBinding, memoryStore, restBinding, type Logger } from "@parley/a2a";
import { bearer } from "@parley/a2a/auth";
import { grpcBinding } from "@parley/grpc";
import { serve, type ServeOptions, type Server } from "@parley/node";
import { actsAgent } from "./agents/acts.ts";
import { tck03 } from "./agents/tck-0.3.ts";
import { configurations, tck10 } from "./agents/tck-1.0.ts";
import type { Kit } from "./expected.ts";

const logger: Logger = {
  debug() {},
  info() {},
  warn: (message, fields) => process.stderr.write(`${message} ${JSON.stringify(fields ?? {})}\n`),
  error: (message, fields) => process.stderr.write(`${message} ${JSON.stringify(fields ?? {})}\n`),
};

/** Serves the agent that a kit tests; `undefined` where there is no such configuration. */
export async function start(kit: Kit, configuration: string, port: number): Promise<Server | undefined> {
  const options: ServeOptions = { port, logger, store: memoryStore() };
  switch (kit) {
    case "tck-1.0": {
      // The page has a column for the default options, which shows the effect of the options below.
      if (configuration === "defaults") return serve(tck10(configurations["all"] ?? {}), options);
      const capabilities = configurations[configuration];
      if (capabilities === undefined) return undefined;
      // The kit sends many messages with one messageId, which a server with safe retries treats as one message. The kit's schema of
      // the card allows no unknown fields, so a card with the fields of 0.3 and of 1.0 does not match.
      const push = configuration === "all";
      return serve(tck10(capabilities), { ...options, dedupe: false, versions: ["1.0"], push });
    }
    case "tck-0.3":
      if (configuration !== "all") return undefined;
      // This kit also sends many messages with one messageId. It expects a scheme in the address of gRPC.
      const bindings = [jsonRpcBinding(), restBinding(), grpcBinding({ url: `http://127.0.0.1:${port}` })];
      return serve(tck03(), { ...options, dedupe: false, bindings, push: true });
    case "acts":
      if (configuration === "all") return serve(actsAgent(), { ...options, push: true });
      if (configuration === "none") return serve(actsAgent({ streaming: false }), options);
      if (configuration !== "guarded") return undefined;
      return serve([{ agent: actsAgent(), extendedCard: (card) => ({ ...card, description: "For those we know." }) }], {
        ...options,
        push: true,
        authenticator: bearer((token) => {
          if (token === "weak") throw new A2AError("PermissionDenied");
          return token === "mine" || token === "theirs" ? { subject: token } : undefined;
        }),
      });
  }
}
