import type { Adapter, AdapterFactory, AdapterPayload } from "oidc-provider";

/**
 * The sessions, grants and tokens of a test's provider, in memory, for the provider's lifetime. The library's own adapter shares one store
 * between all providers of a process, and warns about this.
 */
export function providerStore(): AdapterFactory {
  const rows = new Map<string, AdapterPayload>();
  return (model): Adapter => {
    const key = (id: string): string => `${model}:${id}`;
    const withMember = (name: string, value: string): Promise<AdapterPayload | undefined> =>
      Promise.resolve([...rows].find(([at, row]) => at.startsWith(`${model}:`) && row[name] === value)?.[1]);
    const done = Promise.resolve(undefined);
    return {
      upsert(id, payload) {
        rows.set(key(id), payload);
        return done;
      },
      find: (id) => Promise.resolve(rows.get(key(id))),
      findByUid: (uid) => withMember("uid", uid),
      findByUserCode: (userCode) => withMember("userCode", userCode),
      destroy(id) {
        rows.delete(key(id));
        return done;
      },
      consume(id) {
        const row = rows.get(key(id));
        if (row !== undefined) rows.set(key(id), { ...row, consumed: Math.floor(Date.now() / 1000) });
        return done;
      },
      revokeByGrantId(grantId) {
        for (const [at, row] of rows) if (row.grantId === grantId) rows.delete(at);
        return done;
      },
    };
  };
}
