import type { OptionNames } from "../model/index.ts";
import type { ConnectOptions } from "./connect.ts";
import type { DownloadOptions } from "./download.ts";
import type { SubscribeOptions, WaitOptions } from "./requests.ts";

/* The names of options, for callers without types. */

export const connectNames: OptionNames<ConnectOptions> = {
  binding: 1,
  bindings: 1,
  cardCache: 1,
  clock: 1,
  connectTimeout: 1,
  credentialOrigins: 1,
  credentials: 1,
  extensions: 1,
  fetch: 1,
  headers: 1,
  idleTimeout: 1,
  ids: 1,
  interceptors: 1,
  logger: 1,
  maxCardBytes: 1,
  maxEventBytes: 1,
  maxResponseBytes: 1,
  observer: 1,
  reconnect: 1,
  retry: 1,
  signal: 1,
  timeout: 1,
  trust: 1,
  version: 1,
};

/** Of all calls: `waitFor()` and `download()` call other methods with their own options. */
export const callNames: OptionNames<SubscribeOptions & WaitOptions & DownloadOptions> = {
  after: 1,
  connectTimeout: 1,
  extensionOf: 1,
  extensions: 1,
  fetch: 1,
  headers: 1,
  idleTimeout: 1,
  maxBytes: 1,
  method: 1,
  signal: 1,
  timeout: 1,
  trace: 1,
  until: 1,
  webhook: 1,
};
