import type { Case } from "../case.ts";
import { authCase } from "./auth.ts";
import { clientCase } from "./client.ts";
import { clusterCase } from "./cluster.ts";
import { coldCase } from "./cold.ts";
import { fanInCase } from "./fan-in.ts";
import { getTaskCase } from "./get-task.ts";
import { grpcStreamCase } from "./grpc-stream.ts";
import { grpcCase } from "./grpc.ts";
import { listCase } from "./list.ts";
import { messageCase } from "./message.ts";
import { neighbourCase } from "./neighbour.ts";
import { pushCase } from "./push.ts";
import { resumeCase } from "./resume.ts";
import { streamGrowthCase } from "./stream-growth.ts";
import { streamCase } from "./stream.ts";
import { subscribersCase } from "./subscribers.ts";
import { taskMemoryCase } from "./task-memory.ts";
import { taskSqliteCase } from "./task-sqlite.ts";

/** All cases, in the order of execution and of display. */
export const cases: readonly Case[] = [
  messageCase,
  authCase,
  taskMemoryCase,
  taskSqliteCase,
  streamCase,
  streamGrowthCase,
  getTaskCase,
  listCase,
  subscribersCase,
  fanInCase,
  neighbourCase,
  resumeCase,
  pushCase,
  coldCase,
  clientCase,
  grpcCase,
  grpcStreamCase,
  clusterCase,
];
