import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, it } from "vitest";
import type { Store } from "@parley/a2a/store";
import { sqliteStore } from "@parley/sql/sqlite";
import { times } from "../../../../test/counts.ts";
import { likeTheReference } from "../../../a2a/test/store/properties.ts";

const folder = await mkdtemp(join(tmpdir(), "parley-"));
afterAll(() => rm(folder, { recursive: true }));

describe("sqliteStore", () => {
  it("cannot be told from the reference, crashes included (property)", async () => {
    const paths = new Map<Store, string>();
    const fallen: Store[] = [];
    let files = 0;
    const open = async (path: string): Promise<Store> => {
      // Hundreds of threads would take a minute to begin.
      const store = await sqliteStore({ path, thread: false });
      paths.set(store, path);
      return store;
    };
    await likeTheReference(
      {
        create: () => open(join(folder, `${(files += 1)}.db`)),
        // The old connection is left as it is: its file and log are what a process leaves that was killed.
        crash(store) {
          fallen.push(store);
          return open(paths.get(store) ?? "");
        },
      },
      times(60, 150),
    );
    await Promise.all(fallen.map((store) => store.close()));
  });
});
