import type { Change, Desk } from "./agent.ts";

/** The records of the customers, in memory. Only the OpenID provider decides who a token's customer is (OpenID Connect Core 1.0 §5.3). */
export function recordsOf(issuer: string): {
  readonly all: ReadonlyMap<string, Change>;
  readonly change: Desk["change"];
} {
  const all = new Map<string, Change>();
  return {
    all,
    async change(accessToken, change) {
      const found = await fetch(`${issuer}/.well-known/openid-configuration`);
      const { userinfo_endpoint: userinfo } = (await found.json()) as { readonly userinfo_endpoint: string };
      const answer = await fetch(userinfo, { headers: { authorization: `Bearer ${accessToken}` } });
      if (!answer.ok) throw new Error(`The provider answered ${answer.status}`);
      const { sub } = (await answer.json()) as { readonly sub: string };
      all.set(sub, change);
      return sub;
    },
  };
}
