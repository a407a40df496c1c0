import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { expect, onTestFinished, test } from "vitest";
import { parleyHere } from "./support/in-process.ts";

test.each([
  ["ops", "counts"],
  ["top", "--once"],
])("parley %s does not read an answer without end", async (...command) => {
  let sent = 0;
  const piece = Buffer.alloc(1 << 20, "x");
  const server = createServer((_, response) => {
    const send = (): void => {
      while (!response.destroyed && response.write(piece)) sent++;
      sent++;
      response.once("drain", send);
    };
    response.write('{"');
    send();
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  onTestFinished(() => {
    server.close();
    server.closeAllConnections();
  });
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/ops`;
  const { code, err } = await parleyHere([...command, "--url", url]);
  expect({ code, err }).toEqual({ code: 1, err: expect.stringContaining("HTTP 200 with another answer") as string });
  expect(sent).toBeLessThan(100);
});
