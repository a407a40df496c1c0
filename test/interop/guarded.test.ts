import { describe, onTestFinished } from "vitest";
import { itAuthenticates } from "./guarded.ts";
import { describePeer, startServer, type PeerProgram } from "./peer.ts";
import type { BindingName } from "./steps.ts";

const all: readonly BindingName[] = ["JSONRPC", "HTTP+JSON", "GRPC"];
const python: PeerProgram = { name: "Python SDK 1.3.0", environment: "python1", program: "server_v1.py" };
const go: PeerProgram = { name: "Go SDK 2.3.1", environment: "go", program: "server-v2" };

describe("our client authenticates with servers on other SDKs", () => {
  for (const program of [python, go]) {
    const start = async (): Promise<string> => {
      const server = await startServer(program, ["guarded"]);
      onTestFinished(() => server.stop());
      return server.url;
    };
    // The Go SDK's REST for 0.3 does not use the paths on its card: see servers.test.ts.
    const speaks = { "1.0": all, "0.3": program === go ? (["JSONRPC", "GRPC"] as const) : all };
    describePeer(program, () => itAuthenticates(start, speaks, { word: "message", reply: "direct" }));
  }
});
