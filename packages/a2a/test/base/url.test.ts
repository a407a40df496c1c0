import { expect, it } from "vitest";
import { isLoopback } from "../../src/base/index.ts";

it.each([
  "localhost",
  "LOCALHOST",
  "app.localhost",
  "127.0.0.1",
  "127.8.9.1",
  "::1",
  "0:0:0:0:0:0:0:1",
  "[::1]",
  "::ffff:127.0.0.1",
])("%s is this machine (RFC 6761 §6.3, RFC 1122 §3.2.1.3)", (host) => {
  expect(isLoopback(host)).toBe(true);
});

it.each([
  "",
  "localhost.example.com",
  "notlocalhost",
  "127.0.0.1.example.com",
  "127.example.com",
  "128.0.0.1",
  "0.0.0.0",
  "::",
  "::11",
  "0:0:0:0:0:0:1:1",
  "::ffff:10.0.0.1",
  "[::1].example.com",
])("%j is not", (host) => {
  expect(isLoopback(host)).toBe(false);
});
