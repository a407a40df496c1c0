/*
 * The rule for table versions, so that nodes of two releases can run side by side:
 *
 * - A release adds at most one version, and never changes a published version.
 * - Programs of the previous version keep working, because a version only adds tables, indexes, and columns that are null or have a default,
 * and no program depends yet on data that only newer programs write.
 * - A program upgrades older tables, or rejects them if upgrades are off. It uses tables that are one version newer without changing them,
 * and rejects even newer tables.
 */

/** Maximum number of versions by which the tables may be newer than the program. */
const stepsAhead = 1;

/** Whether tables of version `found` are too new for a program whose newest version is `own`. */
export function isTooNew(found: number, own: number): boolean {
  return found > own + stepsAhead;
}

/** The tables are too new or cannot be used as they are. */
export class UnknownVersion extends Error {}

/** Throws if tables of version `found` are too new for a program whose newest version is `own`. */
export function refuseTooNew(found: number, own: number): void {
  if (isTooNew(found, own)) throw new UnknownVersion(tooNew(found, own));
}

/** Throws if tables of version `found` are not of version `own` or the next version. `cure` tells how to upgrade the tables. */
export function refuseOthers(found: number, own: number, cure: string): void {
  refuseTooNew(found, own);
  if (found >= own) return;
  throw new UnknownVersion(`${tooOld(found, own)}: ${cure}`);
}

/** Why a running program cannot use tables of version `found`, or `undefined`. Tables of the next version work. */
export function conditionOf(found: number, own: number): string | undefined {
  if (isTooNew(found, own)) return tooNew(found, own);
  return found < own ? tooOld(found, own) : undefined;
}

function tooOld(found: number, own: number): string {
  return `The database has version ${found}, and this release has version ${own}`;
}

function tooNew(found: number, own: number): string {
  const most = `this release supports version ${own + stepsAhead} and earlier`;
  return `The database has version ${found}, ${most}: upgrade @parley/sql`;
}
