import { describe, expect, test } from "vitest";
import { readUrl } from "../../src/postgres/connect.ts";

describe("the URL of a database", () => {
  test.each([
    ["postgres://db.example/x", true],
    ["postgres://db.example/x?uselibpqcompat=true", true],
    ["postgres://db.example/x?sslnegotiation=postgres", true],
    ["postgres://db.example/x?sslmode=prefer", true],
    ["postgres://db.example/x?sslmode=require", false],
    ["postgres://db.example/x?sslnegotiation=direct", false],
    ["postgres://db.example/x?ssl=true", false],
    ["postgres://localhost/x", false],
    ["postgres://127.0.0.1/x", false],
  ])("%s tries TLS, and may continue without: %s", (url, prefers) => {
    const target = readUrl(url);
    expect(target.prefersTls).toBe(prefers);
    expect(new URL(target.connectionString).searchParams.get("sslmode") === "prefer").toBe(prefers);
  });

  test.each([
    "postgres://one.example,two.example/x",
    "postgres:///x?host=one.example,two.example",
    "postgres://db.example/x?target_session_attrs=read-write",
    "postgres://db.example/x?hostaddr=10.0.0.1",
    "postgres://%%%",
    "postgres://user:%E0%A4%A@db.example/x",
  ])("%s is rejected: pg would reach another server, or none", (url) => {
    expect(() => readUrl(url)).toThrow("cannot be used");
  });
});
