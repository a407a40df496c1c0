import { describe, expect, it } from "vitest";
import type { AgentCard } from "@parley/server";
import { originOf } from "../src/client/service.ts";

const cardWith = (...urls: string[]): AgentCard => ({
  name: "Card",
  description: "",
  version: "1",
  supportedInterfaces: urls.map((url) => ({ url, protocolBinding: "JSONRPC", protocolVersion: "1.0" })),
  capabilities: {},
  defaultInputModes: [],
  defaultOutputModes: [],
  skills: [],
});

describe("the address of a gRPC interface", () => {
  it.each([
    ["http://example.com:50051", "http://example.com:50051"],
    ["grpc://example.com:50051/", "http://example.com:50051"],
    ["https://example.com", "https://example.com"],
    ["GRPCS://Example.com:443", "https://example.com"],
    ["grpcs://[2001:db8::1]:8443", "https://[2001:db8::1]:8443"],
  ])("uses TLS by its scheme: %s", (url, origin) => {
    expect(originOf(url)).toBe(origin);
  });

  it.each([
    ["agents.example.com:443", "https://agents.example.com"],
    ["agents.example.com", "https://agents.example.com"],
    ["10.0.0.7:50051", "https://10.0.0.7:50051"],
    ["[2001:db8::1]:50051", "https://[2001:db8::1]:50051"],
    ["localhost:50051", "http://localhost:50051"],
    ["agent.localhost:50051", "http://agent.localhost:50051"],
    ["127.0.0.2:50051", "http://127.0.0.2:50051"],
    ["[::1]:50051", "http://[::1]:50051"],
  ])("without a scheme uses TLS, except on this machine: %s", (url, origin) => {
    expect(originOf(url)).toBe(origin);
  });

  it("without a scheme has the scheme of the card's other URLs", () => {
    const bare = "agents.internal:50051";
    const http = "http://agents.internal:8080";
    expect(originOf(bare, cardWith(bare, http))).toBe(`http://${bare}`);
    expect(originOf(bare, cardWith(bare, http, "https://agents.internal"))).toBe(`https://${bare}`);
    expect(originOf(bare, cardWith(bare))).toBe(`https://${bare}`);
    expect(originOf("127.0.0.1:50051", cardWith("https://127.0.0.1:8443"))).toBe("https://127.0.0.1:50051");
  });

  it.each([
    "",
    "ftp://example.com",
    "https://example.com/path",
    "host:port",
    "a b:1",
    "user@host:1",
    "http://",
    ":443",
  ])("is invalid: %j", (url) => {
    expect(originOf(url)).toBeUndefined();
  });
});
