import { countingHandler } from "./agent.ts";
import { check } from "./check.ts";

declare const Bun: {
  readonly argv: readonly string[];
  serve(options: { hostname: string; port: number; fetch(request: Request): Promise<Response> }): {
    readonly port: number;
  };
};

const [, , url] = Bun.argv;
if (url === undefined) {
  const server = Bun.serve({ hostname: "127.0.0.1", port: 0, fetch: (request) => handler.fetch(request) });
  const publicUrl = `http://127.0.0.1:${server.port}`;
  const handler = countingHandler(publicUrl);
  process.stdout.write(`${publicUrl}\n`);
} else {
  process.stdout.write(`${JSON.stringify(await check(url))}\n`);
}
