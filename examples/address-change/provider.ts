import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { createServer } from "node:http";
import Provider from "oidc-provider";

/** A small OpenID provider to try the example with: it accepts any name and any password. Use your own in its place. */
export async function startProvider(port: number, client: { id: string; secret: string; redirectUri: string }) {
  const issuer = `http://127.0.0.1:${port}`;
  const provider = new Provider(issuer, {
    clients: [{ client_id: client.id, client_secret: client.secret, redirect_uris: [client.redirectUri] }],
    cookies: { keys: [randomBytes(16).toString("hex")] },
    findAccount: (_context, id) => ({ accountId: id, claims: () => ({ sub: id }) }),
  });
  await once(createServer((...call) => void provider.callback()(...call)).listen(port, "127.0.0.1"), "listening");
  return issuer;
}
