// Searches 4 MB of text in memory. Prints the number of tasks that match.
import { memoryStore } from "@parley/server";
import { searchTerms } from "@parley/server/store";
import { append, making } from "../../../testing/src/store/given.ts";

const store = memoryStore();
await store.search?.use(true);
const words = (from: number): string => Array.from({ length: 12_000 }, (_, at) => (from + at).toString(36)).join(" ");
for (let at = 0; at < 68; at += 1) await append(store, making(`t${at}`, { text: words(100_000 + at * 12_000) }));
const query = { terms: searchTerms((100_000 + 500).toString(36)), limit: 20 };
const page = await store.search?.find({ agent: "agent", owner: "alice" }, query);
process.stdout.write(String(page?.total));
