import { defineAgent, nodeDialer, type Agent } from "@parley/node";
import { guardedFetch, type GuardedFetch } from "@parley/a2a/protocol";
import { Analyst } from "./analyst.ts";
import type { AnalystTypes } from "./conversation/memory.ts";
import { tableTypes } from "./conversation/source.ts";
import { resumable } from "./conversation/steps.ts";

export interface DataAnalystOptions {
  /** Fetches files that are sent as a URL. Default: only from public addresses, at most 10 MiB. */
  readonly fetch?: GuardedFetch;
}

const inputModes = ["text/plain", ...tableTypes, "application/octet-stream"];
const outputModes = ["text/plain", "text/markdown", "application/json", "image/svg+xml"];

/** Makes an agent that reads CSV files, profiles their columns and draws charts. */
export function createDataAnalyst({ fetch = guardedFetch({}, nodeDialer()) }: DataAnalystOptions = {}): Agent {
  return defineAgent<AnalystTypes>({
    name: "Data analyst",
    description:
      "Reads a CSV file, profiles its columns, and answers questions such as “chart average temp_max by month” with a chart and its numbers. It remembers the table for the rest of the conversation, and asks when a question could mean several things.",
    version: "1.0.0",
    skills: [
      {
        id: "profile",
        name: "Profile a table",
        description:
          "Finds out what the columns of a CSV file hold: types, missing values, ranges, averages, quartiles, frequent values.",
        tags: ["csv", "statistics", "data quality"],
        examples: ["profile", "describe this table", "show the first 10 rows"],
        inputModes: [...inputModes],
        outputModes: ["text/markdown", "text/plain", "application/json"],
      },
      {
        id: "chart",
        name: "Draw a chart",
        description:
          "Draws a column by another, a distribution, or two columns against each other, as SVG with the numbers beside it.",
        tags: ["csv", "chart", "visualization", "svg"],
        examples: [
          "chart average temp_max by month",
          "plot wind over date",
          "bar chart of count by weather",
          "show the distribution of precipitation",
          "plot temp_max against temp_min, split by weather",
        ],
        inputModes: [...inputModes],
        outputModes: ["image/svg+xml", "application/json", "text/markdown", "text/plain"],
      },
    ],
    defaultInputModes: inputModes,
    defaultOutputModes: outputModes,
    resumable: true,
    async *onMessage(turn) {
      const analyst = new Analyst(turn, fetch);
      yield* resumable(turn, analyst.steps(), () => analyst.table);
    },
  });
}

const dataAnalyst: Agent = createDataAnalyst();

export default dataAnalyst;
