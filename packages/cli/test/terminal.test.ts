import { PassThrough } from "node:stream";
import { describe, expect, test } from "vitest";
import { askerOn } from "../src/io.ts";

/** A terminal, with its questions and its input. */
function terminal() {
  const input = new PassThrough();
  let shown = "";
  const output = { write: (piece: string | Buffer): boolean => ((shown += String(piece)), true) };
  const ask = askerOn(input, output);
  return { ask, type: (text: string) => void input.write(text), shown: () => shown };
}

describe("answers that arrive before their questions", () => {
  test("are kept, however many lines arrive at once", async () => {
    const { ask, type } = terminal();
    const first = ask("City: ", false);
    type("Bern\n2026-02-28\n7");
    expect(await first).toBe("Bern");
    expect(await ask("Day: ", false)).toBe("2026-02-28");
    const last = ask("Seats: ", false);
    type("0\n");
    expect(await last).toBe("70");
  });

  test("are kept while no question is open", async () => {
    const { ask, type } = terminal();
    const first = ask("City: ", false);
    type("Bern\n");
    expect(await first).toBe("Bern");
    type("2026-02-28\n");
    expect(await ask("Day: ", false)).toBe("2026-02-28");
  });

  test("are shown with their questions, unless these hide them", async () => {
    const { ask, type, shown } = terminal();
    const first = ask("City: ", false);
    type("Bern\nsecret-of-bern-0123456789\n7\n");
    await first;
    expect(shown()).not.toContain("secret");
    await ask("Password: ", true);
    await ask("Seats: ", false);
    expect(shown()).not.toContain("secret");
    expect(shown()).toMatch(/Password: \nSeats: 7\n$/);
  });

  test("may be absent", async () => {
    const { ask, type } = terminal();
    const first = ask("City: ", false);
    type("Bern\n\u0004");
    expect(await first).toBe("Bern");
    expect(await ask("Day: ", false)).toBeUndefined();
    const next = ask("Day: ", false);
    type("2026-02-28\n");
    expect(await next).toBe("2026-02-28");
  });
});

test("Ctrl-D and Ctrl-C are not an answer", async () => {
  for (const key of ["\u0004", "\u0003"]) {
    const { ask, type } = terminal();
    const answer = ask("City: ", false);
    type(key);
    expect(await answer).toBeUndefined();
  }
});
