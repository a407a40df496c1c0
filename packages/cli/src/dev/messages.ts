import type { ServeOptions } from "../serve.ts";

/* What `parley dev` and the processes that it starts say to each other. */

/** What a process is to serve. */
export interface Serving {
  readonly file: string;
  readonly options: ServeOptions;
}

/** To a process: what to serve; to begin, once it has loaded the module; to end, at the second time at once. */
export type Order = { readonly serve: Serving } | "listen" | "stop";

/** From a process: its module is loaded, it serves, or why it cannot. */
export type Report = "loaded" | "ready" | { readonly failed: string };
