import { eventOf } from "@parley/a2a/internal/model/index";
import type { Rule } from "./check.ts";
import { digest, type Delivered } from "./history.ts";

/**
 * For each config, the accepted deliveries have the numbers 1, 2, 3, … in order, and together they contain all events of the task. A sender
 * may repeat an accepted delivery before the next delivery.
 */
export const webhookRule: Rule = ({ entries, log }) => {
  const byConfig = new Map<string, Delivered[]>();
  for (const entry of entries) {
    if (entry.type === "delivered") byConfig.set(entry.config, [...(byConfig.get(entry.config) ?? []), entry]);
  }
  // The server does not deliver the user's messages.
  const due = (log?.records ?? []).filter(({ kind }) => kind !== "message").map((record) => digest(eventOf(record)));
  return Array.from(byConfig, ([config, all]) => {
    const fallen = all.findIndex(({ sequence }, at) => at > 0 && sequence < (all[at - 1]?.sequence ?? 0));
    if (fallen > 0) return `${config}: ${all[fallen]?.sequence} comes after ${all[fallen - 1]?.sequence}`;
    const taken = all.filter((each) => each.taken);
    const first = taken.filter(({ sequence }, at) => taken.findIndex((each) => each.sequence === sequence) === at);
    const wrong = first.findIndex(({ sequence }, at) => sequence !== at + 1);
    if (wrong >= 0) return `${config}: ${first[wrong]?.sequence} comes in place of ${wrong + 1}`;
    if (first.length !== due.length) return `${config}: ${first.length} events of ${due.length}`;
    const other = first.findIndex((each, at) => each.digest !== due[at]);
    return other < 0 ? [] : `${config}: delivery ${other + 1} is another event`;
  }).flat();
};
