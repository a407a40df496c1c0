/** Agents in frameworks of the Fetch API that know their users. */

export { fetchMount, type FetchMountOptions } from "./server/fetch-mount.ts";
