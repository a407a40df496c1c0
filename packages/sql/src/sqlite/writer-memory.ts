import type { BoundedMap } from "@parley/a2a/store";
import type { Driver } from "./driver.ts";
import { knownTasks, type KnownTask } from "./known-tasks.ts";
import { count } from "./rows.ts";
import { ScopeIds } from "./scopes.ts";

/** What a writer remembers from one transaction to the next. After one that was rolled back it is wrong. */
export class WriterMemory {
  readonly scopes: ScopeIds;
  readonly tasks: BoundedMap<KnownTask> = knownTasks();
  readonly #driver: Driver;
  #version: number | undefined;

  constructor(driver: Driver) {
    this.#driver = driver;
    this.scopes = new ScopeIds(driver);
  }

  /** In a transaction: forgets what others may have changed since the one before. Agents and owners stay. */
  check(): void {
    const version = dataVersion(this.#driver);
    if (version !== this.#version) this.tasks.clear();
    this.#version = version;
  }

  forget(): void {
    this.scopes.forget();
    this.tasks.clear();
  }
}

/** Another number after each commit of another connection. */
export function dataVersion(driver: Driver): number {
  return count(driver.prepare("PRAGMA data_version").get());
}
