import type { Handler } from "@parley/server";
import { countingHandler } from "./agent.ts";
import { check } from "./check.ts";

declare const Deno: {
  readonly args: readonly string[];
  readonly stdout: { write(bytes: Uint8Array): Promise<number> };
  serve(
    options: { hostname: string; port: number; onListen(address: { port: number }): void },
    fetch: (request: Request) => Promise<Response>,
  ): unknown;
};

const say = (line: string): Promise<number> => Deno.stdout.write(new TextEncoder().encode(`${line}\n`));

const [url] = Deno.args;
if (url === undefined) {
  let handler: Handler;
  const onListen = ({ port }: { port: number }): void => {
    const publicUrl = `http://127.0.0.1:${port}`;
    handler = countingHandler(publicUrl);
    void say(publicUrl);
  };
  Deno.serve({ hostname: "127.0.0.1", port: 0, onListen }, (request) => handler.fetch(request));
} else {
  await say(JSON.stringify(await check(url)));
}
