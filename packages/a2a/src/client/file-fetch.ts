import { isLoopback } from "../base/index.ts";
import { A2AError } from "../model/index.ts";
import type { FileFetch } from "../protocol/index.ts";
import type { FetchLike } from "../transport/client/binding.ts";

/** Reading files that an agent links to. */

/**
 * Makes `Client.fileFetch()`. `own` returns the URLs of the agent whose origins are its own: the user named them, so a link there leads to no
 * other machine than the calls do.
 */
export function fileFetching(
  fetch: FetchLike,
  own: () => readonly (string | undefined)[],
): (other?: FileFetch) => FileFetch {
  return (other) => (url, init) => {
    if (own().some((each) => each !== undefined && isSameOrigin(each, url))) {
      const { signal = new AbortController().signal } = init;
      // Without credentials: the link is a capability. A redirect could lead anywhere.
      return fetch(url, { method: "GET", headers: {}, signal, redirect: "manual" });
    }
    if (other !== undefined) return other(url, init);
    const why = "The file is not at the agent's own origin: pass a fetch that may read it, such as guardedFetch()";
    throw new A2AError("UnsupportedOperation", `${why}; its URL is ${url}`, { metadata: { url } });
  };
}

/** Whether both have one origin. On this machine its names are one: cards say `localhost` where the user says `127.0.0.1`. */
function isSameOrigin(one: string, other: string): boolean {
  if (!URL.canParse(one) || !URL.canParse(other)) return false;
  const [left, right] = [new URL(one), new URL(other)];
  if (!/^https?:$/.test(left.protocol) || left.protocol !== right.protocol || left.port !== right.port) return false;
  return left.hostname === right.hostname || (isLoopback(left.hostname) && isLoopback(right.hostname));
}
