/** Error codes of Node and Bun for a connection that was never made. Browsers do not tell. */
const unsentCodes =
  /^(ECONNREFUSED|ENOTFOUND|EAI_AGAIN|E(?:HOST|NET)UNREACH|UND_ERR_CONNECT_TIMEOUT|ConnectionRefused|FailedToOpenSocket)$/;

/** Whether an error or one of its causes says that no connection was made, so that nothing was sent. */
export function wasNeverSent(error: unknown): boolean {
  for (let cause = error; cause instanceof Error; cause = cause.cause) {
    if ("code" in cause && unsentCodes.test(String(cause.code))) return true;
    // Deno has no code for it, only a message.
    if (cause.message.includes("client error (Connect)")) return true;
  }
  return false;
}

/** Codes of Node for what no later attempt mends: certificates, a port without TLS, malformed addresses and headers. */
const permanentCodes = /CERT|VERIFY_LEAF|WRONG_VERSION|INVALID/;

/** Whether an error or one of its causes says that no connection can be made, now or later. */
export function cannotConnect(error: unknown): boolean {
  for (let cause = error; cause instanceof Error; cause = cause.cause) {
    // `fetch` refuses ports of some old services, without a code.
    if (("code" in cause && permanentCodes.test(String(cause.code))) || cause.message === "bad port") return true;
  }
  return false;
}
