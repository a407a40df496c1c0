import type { Case } from "../case.ts";
import { messageCase } from "./message.ts";
import { streamCase } from "./stream.ts";
import { taskMemoryCase } from "./task-memory.ts";
import { taskSqliteCase } from "./task-sqlite.ts";

/** All cases, in the order in which they run and are shown. */
export const cases: readonly Case[] = [messageCase, taskMemoryCase, taskSqliteCase, streamCase];
