import { expect, test } from "vitest";
import { decoded, encoded } from "../app/fragment.ts";

test("a link without encoding is read, and an ID that cannot be encoded still has a link", () => {
  expect(["%E0%A4%A", "a%2Fb"].map(decoded)).toEqual(["%E0%A4%A", "a/b"]);
  expect(["\ud800x", "a/b\u{1f600}"].map(encoded)).toEqual(["%EF%BF%BDx", "a%2Fb%F0%9F%98%80"]);
});
