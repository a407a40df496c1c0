import type { ServeOptions } from "../serve.ts";

/* What `parley dev` and the processes that it starts say to each other. */

/** What a process is to serve. */
export interface Serving {
  readonly file: string;
  readonly options: ServeOptions;
}

/** To begin, once it has loaded the module. */
export interface Listen {
  /** Whether it comes after another process, which is leaving the port. */
  readonly after: boolean;
}

/** To a process: what to serve; to begin; to finish its tasks and end. */
export type Order = { readonly serve: Serving } | Listen | "stop";

/** From a process: its module is loaded, it has heard that it is to end, or why it cannot serve. */
export type Report = "loaded" | "stopping" | { readonly failed: string };
