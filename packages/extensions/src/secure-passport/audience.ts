import type { AgentInterface } from "@parley/a2a/internal/model/index";

/**
 * For whom a passport is that is sent to an interface: its URL. Agents with one gRPC address have a tenant each (A2A 1.0 §8.3.2), which is a
 * part of it: else a passport for one of them would be good for the others.
 */
export function audienceOf({ url, tenant }: Pick<AgentInterface, "url" | "tenant">): string {
  return tenant === undefined || tenant === "" ? url : `${url}#${tenant}`;
}
