import { A2AError } from "@parley/a2a";
import { expect, test } from "vitest";
import { available } from "./available.ts";

test("an unavailable service is retried until it is there, and nothing else is", async () => {
  let tries = 0;
  const work = async (): Promise<number> => {
    tries += 1;
    if (tries < 3) throw new A2AError("Unavailable", "The database cannot be reached now");
    return tries;
  };
  await expect(available(work)).resolves.toBe(3);
  await expect(available(() => Promise.reject(new Error("wrong")))).rejects.toThrow("wrong");
});
