import * as installed from "ai";
import { checkPeer, installedVersion } from "../shared/peer.ts";

/**
 * The installed AI SDK. As a namespace: a version without one of the imported names would otherwise be rejected by the module loader, which does not
 * tell the range.
 *
 * @throws Error for a version other than 6 and 7.
 */
export function aiSDK(): typeof installed {
  checkPeer({ adapter: "ai-sdk", name: "ai", min: 6, below: 8 }, installedVersion("ai", import.meta.url));
  return installed;
}
