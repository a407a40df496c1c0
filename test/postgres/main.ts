import { randomUUID } from "node:crypto";
import { tmpdir } from "node:os";
import pg from "pg";
import { startPostgres } from "./server.ts";

// A database for a program that is none of vitest, such as the benchmarks: one of the server that DATABASE_URL names, else of a server of
// its own, whose files are on the disk. Prints a line of JSON with its URL, and goes with its standard input.

const given = process.env["DATABASE_URL"];
const server = given === undefined || given === "" ? await startPostgres({ parent: tmpdir() }) : undefined;
const name = `parley_program_${randomUUID().replaceAll("-", "")}`;
const url = new URL(server?.url ?? given ?? "");
const client = new pg.Client({ connectionString: url.href });
await client.connect();
await client.query(`CREATE DATABASE ${name}`);
const { rows } = await client.query<{ server_version: string }>("SHOW server_version");
url.pathname = `/${name}`;
process.stdout.write(`${JSON.stringify({ url: url.href, version: rows[0]?.server_version.split(" ")[0] })}\n`);
process.stdin.resume().once("end", () => void end());

async function end(): Promise<void> {
  await client.query(`DROP DATABASE ${name} WITH (FORCE)`);
  await client.end();
  await server?.remove();
  process.exit(0);
}
