import { expect, test } from "vitest";
import { callHeaders } from "../src/connection.ts";

test("a token becomes a bearer credential; the option takes precedence over the environment", () => {
  expect(callHeaders({ token: "a", header: [] }, { PARLEY_TOKEN: "b" })).toEqual({ authorization: "Bearer a" });
  expect(callHeaders({}, { PARLEY_TOKEN: "b" })).toEqual({ authorization: "Bearer b" });
  expect(callHeaders({}, { PARLEY_TOKEN: "" })).toEqual({});
});

test("headers are sent as given; an explicit one takes precedence over the token", () => {
  expect(callHeaders({ header: ["X-Key: a: b", "Authorization:Basic eA=="], token: "t" }, {})).toEqual({
    "x-key": "a: b",
    authorization: "Basic eA==",
  });
});
