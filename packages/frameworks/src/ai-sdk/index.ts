export type { SupportedVersions } from "../shared/peer.ts";
export { supported } from "./peer.ts";
