import type { StoreNode } from "@parley/a2a/store";
import { decodeName, encodeName, int, text } from "./rows.ts";
import type { Sql } from "./schema.ts";

/*
 * The table is not logged: a heartbeat writes nothing that has to reach the disk. After a crash of the server, and on the other side of a
 * failover, it is empty, and every process that lives is back in it with its next heartbeat.
 */

const beatNode = `WITH own AS (
    INSERT INTO parley.nodes (name, beats, at) VALUES ($1, 1, clock_timestamp())
    ON CONFLICT (name) DO UPDATE SET beats = parley.nodes.beats + 1, at = clock_timestamp() RETURNING name, beats, at
  ), every AS (
    SELECT name, beats, at FROM own UNION ALL SELECT name, beats, at FROM parley.nodes WHERE name <> $1
  )
  SELECT name, beats, floor(extract(epoch FROM clock_timestamp() - at) * 1000)::bigint FROM every`;

/** One statement for each process and heartbeat. */
export async function beat(sql: Sql, node: string): Promise<readonly StoreNode[]> {
  const rows = await sql(beatNode, encodeName(node));
  return rows.map((row) => ({ name: decodeName(text(row, 0)), beats: int(row, 1), silent: int(row, 2) }));
}

export async function forget(sql: Sql, nodes: readonly string[]): Promise<void> {
  await sql("DELETE FROM parley.nodes WHERE name = ANY($1::text[])", nodes.map(encodeName));
}
