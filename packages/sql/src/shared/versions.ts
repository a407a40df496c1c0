/*
 * The rule for table versions, so that nodes of two releases can run side by side:
 *
 * - A release adds at most one version, and never changes a published one.
 * - Programs of the version before keep working: a version adds tables, indexes, and columns that are null or have a default, and
 * nothing depends yet on what only newer programs write.
 * - A program upgrades older tables, or rejects them if told not to. It works with tables that are one version newer, which it leaves
 * as they are, and rejects newer ones.
 */

/** How many versions newer the tables may be. */
const stepsAhead = 1;

/** Whether tables of version `found` are too new for a program whose newest version is `own`. */
export function isTooNew(found: number, own: number): boolean {
  return found > own + stepsAhead;
}

/** The tables are too new or cannot be used as they are. */
export class UnknownVersion extends Error {}

export function tooNew(found: number, own: number): UnknownVersion {
  const most = `this release supports version ${own + stepsAhead} and earlier`;
  return new UnknownVersion(`The database has version ${found}, ${most}: upgrade @parley/sql`);
}
