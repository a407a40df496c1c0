/*
 * The rule for the versions of tables, so that nodes of two releases can run side by side while one replaces the other:
 *
 * - A release adds at most one version to those of the release before, and never changes a published one.
 * - What a version changes, programs of the version before can live with: it adds tables, indexes, and columns that are null or have a
 *   default; and until the next version nothing depends on what only the newer program writes.
 * - A program brings older tables to its own version, or is told not to and refuses them. It works with tables that are one version newer,
 *   which it leaves as they are, and refuses those that are newer still.
 */

/** How many versions newer than a program the tables may be. */
const stepsAhead = 1;

/** Whether tables of version `found` are too new for a program whose newest version is `own`. */
export function isTooNew(found: number, own: number): boolean {
  return found > own + stepsAhead;
}

/** The tables were made by a release that is too new, or cannot be used as they are. */
export class UnknownVersion extends Error {}

export function tooNew(found: number, own: number): UnknownVersion {
  const most = `this release supports version ${own + stepsAhead} and earlier`;
  return new UnknownVersion(`The database has version ${found}, ${most}: upgrade @parley/sql`);
}
