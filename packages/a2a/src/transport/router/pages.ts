import type { UniversalRequest, UniversalResponse } from "../../protocol/index.ts";
import { owns, type ClaimedBase, type ServiceMount } from "./claims.ts";

/* Which requests are those of browsers, and which page they get. */

/** The pages that browsers get at the addresses of agents. */
export interface Pages {
  /** Path of the server, where the page that lists all agents is, unless an agent is there. */
  readonly root: string;
  /** Answers with the page of one agent, or of several. */
  answer(request: UniversalRequest, mounts: readonly ServiceMount[]): Promise<UniversalResponse>;
}

/** The agents whose page is at a path: where they are called by POST, or where nothing else is. */
export function pagePaths(claimed: readonly ClaimedBase[], root: string): ReadonlyMap<string, readonly ServiceMount[]> {
  const found = new Map<string, readonly ServiceMount[]>();
  const add = (path: string, mounts: readonly ServiceMount[]): void =>
    void found.set(path, mounts).set(`${path}/`, mounts);
  add(
    root,
    claimed.flatMap(({ mounts }) => mounts),
  );
  for (const { path: base, mounts, claims, paths } of claimed) {
    const untold = mounts.filter(({ tenant }) => tenant === undefined);
    const common = untold.length > 0 ? untold : mounts;
    if (!paths.has("") && !claims.some((claim) => owns(claim, ""))) add(base, common);
    else for (const own of [base, `${base}/`]) found.delete(own);
    for (const { path, tenant, page } of claims.flatMap((claim) => claim.paths ?? [])) {
      if (page !== true) continue;
      add(base + path, tenant === undefined ? common : mounts.filter((mount) => mount.tenant === tenant));
    }
  }
  return found;
}

/** Whether a request is that of a browser that shows a page: it accepts HTML by name, and JSON and events not more. */
export function readsHtml(request: UniversalRequest): boolean {
  const accept = request.header("accept")?.toLowerCase();
  if ((request.method !== "GET" && request.method !== "HEAD") || !accept?.includes("text/html")) return false;
  const weights = new Map(
    accept.split(",").map((range) => {
      const [type = "", ...parameters] = range.split(";").map((part) => part.trim());
      const q = parameters.find((parameter) => parameter.startsWith("q="))?.slice(2);
      return [type, q === undefined ? 1 : Number(q)];
    }),
  );
  const html = weights.get("text/html") ?? 0;
  const others = ["application/json", "application/a2a+json", "text/event-stream"].map(
    (type) => weights.get(type) ?? 0,
  );
  return html > 0 && others.every((weight) => weight <= html);
}
