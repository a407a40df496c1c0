import { test } from "vitest";
import { times } from "../../../../test/counts.ts";
import { killTest } from "./kills.ts";

const kills = times(3, 50);

test(`repeats no stored call, and doubles no text: ${kills} kills`, () =>
  killTest({
    program: "langgraph-server.ts",
    agents: ["plain", "durable", "nested"],
    kills,
    answer: "yes",
    texts: ["Looking it up.", "I would pay.", "I have paid it."],
    calls: [1, 2, 3, 4, 5],
  }));
