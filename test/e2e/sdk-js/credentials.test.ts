import { describe } from "vitest";
import { itAuthenticates } from "../../interop/guarded.ts";
import { sdkAgent } from "./obedient-1.ts";

describe("our client authenticates at a server of the SDK for JavaScript", () => {
  const all = ["JSONRPC", "HTTP+JSON", "GRPC"] as const;
  const start = async (): Promise<string> => (await sdkAgent("", true)).url;
  itAuthenticates(start, { "1.0": all, "0.3": all }, { word: "reply", reply: "tenant " });
});
