import { A2AError, type Client, type FileFetch } from "@parley/a2a/internal/client/index";
import { isLoopback } from "@parley/a2a/internal/base/index";

/** Longest time to fetch one file, in milliseconds. */
const longest = 6 * 3_600_000;

/** A fetch for the files of `--out`: those at the agent's own origin, and with `--fetch-urls` those at public addresses. */
export function fileFetchOf(client: Client, at: string, fetchUrls: boolean): FileFetch | undefined {
  return client.fileFetch(fetchUrls ? guarded(at) : refuse);
}

/** The agent chose the address: it must not lead into the user's network. Only an agent on this machine may link to this machine. */
function guarded(at: string): FileFetch {
  let fetch: Promise<FileFetch> | undefined;
  const load = async (): Promise<FileFetch> => {
    // Loaded only on request: the host loads the server as well.
    const [{ guardedFetch }, { nodeDialer }] = await Promise.all([
      import("@parley/a2a/internal/net/index"),
      import("@parley/node"),
    ]);
    const allowLoopback = isLoopback(new URL(at).hostname);
    return guardedFetch({ maxBytes: Number.MAX_SAFE_INTEGER, timeout: longest, allowLoopback }, nodeDialer());
  };
  return async (url, init) => (await (fetch ??= load()))(url, init);
}

const refuse: FileFetch = (url) => {
  const why = "that is not the agent's own origin; pass --fetch-urls to save it";
  return Promise.reject(new A2AError("UnsupportedOperation", why, { metadata: { url } }));
};
