const segment = /^[A-Za-z0-9_-][A-Za-z0-9_~-]{0,254}$/;

/** Whether a text is the key of a blob. */
export function isBlobKey(key: string): boolean {
  return key.length <= 800 && key.split("/").every((each) => segment.test(each.replace(/^~/, "_")));
}

/**
 * Checks the key of a blob, so that none leaves the folder or the bucket that it belongs to.
 *
 * @throws TypeError
 */
export function checkBlobKey(key: string): void {
  if (!isBlobKey(key)) throw new TypeError(`Not the key of a blob: ${JSON.stringify(key.slice(0, 100))}`);
}
