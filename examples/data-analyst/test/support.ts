import { readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { file, type Artifact, type Task } from "@parley/node";
import type { RawPart } from "@parley/a2a/model";
import { openTable, type Table } from "../src/csv/table.ts";
import { profileTable, type Profile } from "../src/profile/profile.ts";

const data = fileURLToPath(new URL("../../../node_modules/vega-datasets/data/", import.meta.url));

/** A real file of the `vega-datasets` package. */
export function dataset(name: string): Uint8Array {
  return readFileSync(join(data, name));
}

export function csvPart(name: string, bytes: Uint8Array | string = dataset(name)): RawPart {
  const content = typeof bytes === "string" ? new TextEncoder().encode(bytes) : bytes;
  return file(content, { filename: name, mediaType: "text/csv" });
}

export function tableOf(text: string, name = "test.csv"): Table {
  return openTable(name, new TextEncoder().encode(text));
}

export const never: AbortSignal = new AbortController().signal;

export async function all<T>(source: AsyncIterable<T>): Promise<readonly T[]> {
  const items: T[] = [];
  for await (const item of source) items.push(item);
  return items;
}

/** Runs a reader to its end. */
export async function resultOf<T>(reading: AsyncGenerator<unknown, T, void>): Promise<T> {
  for (;;) {
    const next = await reading.next();
    if (next.done === true) return next.value;
  }
}

export function profileOf(table: Table): Promise<Profile> {
  return resultOf(profileTable(table, never));
}

/** Rows enough that reading them takes a while: `rows` measurements of three stations, the same for the same number. */
export function largeCsv(rows: number): string {
  const lines = ["time,station,level"];
  const stations = ["north", "south", "west"];
  for (let row = 0; row < rows; row += 1) {
    const time = new Date(Date.UTC(2020, 0, 1) + row * 600_000).toISOString().slice(0, 16);
    lines.push(`${time},${stations[row % 3]},${((row * 7919) % 1000) / 10}`);
  }
  return `${lines.join("\n")}\n`;
}

/** What the agent said last, in words. */
export function lastWords(task: Task): string {
  const said = task.status.message ?? task.history?.findLast(({ role }) => role === "ROLE_AGENT");
  return said?.parts.map(({ text = "" }) => text).join("\n") ?? "";
}

export function artifactOf(task: Task, id: string): Artifact {
  const found = task.artifacts?.find(({ artifactId }) => artifactId.startsWith(id));
  if (found === undefined)
    throw new Error(`No artifact ${id}, but ${task.artifacts?.map((one) => one.artifactId).join(", ")}`);
  return found;
}

export function svgOf(artifact: Artifact): string {
  const part = artifact.parts.find(({ mediaType }) => mediaType === "image/svg+xml");
  return Buffer.from(part?.raw ?? "", "base64").toString("utf8");
}

/** The data part of an artifact, as what it is expected to be. */
export function dataOf<T = Record<string, unknown>>(artifact: Artifact): T {
  return artifact.parts.find((part) => part.data !== undefined)?.data as T;
}
