import * as installed from "ai";
import { checkPeer, installedVersion } from "../shared/peer.ts";

/**
 * The installed AI SDK. Imported as a namespace: with named imports, the module loader would reject a version that lacks a name, without
 * reporting the supported range.
 *
 * @throws Error for a version other than 6 and 7.
 */
export function aiSDK(): typeof installed {
  checkPeer({ adapter: "ai-sdk", name: "ai", min: 6, below: 8 }, installedVersion("ai", import.meta.url));
  return installed;
}
