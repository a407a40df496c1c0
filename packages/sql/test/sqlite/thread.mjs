// The thread that writes, of the sources: what lets a process run TypeScript does not reach its threads on Node 20.
import { register } from "tsx/esm/api";

register();
await import("../../src/sqlite/sqlite-thread.ts");
