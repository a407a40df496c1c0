/**
 * Agents in frameworks of the Fetch API that know their users.
 * @packageDocumentation
 */

export { fetchMount, type FetchMountOptions } from "./server/fetch-mount.ts";
