import { expect, test } from "vitest";
import { faults, readRequirements } from "../requirements.ts";

test("every requirement of A2A 1.0 on servers has a proof that exists, or names the missing feature", () => {
  expect(faults(readRequirements())).toEqual([]);
});

test("a row without a proof, with a missing proof, listed twice, or without a section is reported", () => {
  const requirement = "A send is answered.";
  const here = "kits/test/requirements.test.ts";
  const claims = new Map([
    ["3.1.1-c", ["CORE-SEND-101"]],
    ["answer", ["CORE-SEND-101"]],
    ["3.1.1-d", ["CORE-SEND-101", "CORE-SEND-102"]],
  ]);
  expect(
    faults(
      [
        { id: "3.1.1-a", requirement },
        { id: "3.1.1-b", requirement, proof: [`${here}: nobody wrote this`, "no.test.ts: what"] },
        { id: "3.1.1-c", requirement, waitsFor: "webhooks" },
        { id: "3.1.1-c", requirement, waitsFor: "webhooks" },
        { id: "answer", requirement },
      ],
      claims,
    ),
  ).toEqual([
    "3.1.1-a has no proof",
    `3.1.1-b names a proof that does not exist: ${here}: nobody wrote this`,
    "3.1.1-b names a proof that does not exist: no.test.ts: what",
    "3.1.1-c has a proof and waits for webhooks",
    "3.1.1-c is in the list twice",
    "3.1.1-c has a proof and waits for webhooks",
    "answer does not begin with a section",
    "3.1.1-d is named by CORE-SEND-101, CORE-SEND-102, but is not in the list",
  ]);
});
