const segment = /^[A-Za-z0-9_-][A-Za-z0-9_~-]{0,254}$/;

/**
 * Checks the key of a blob, so that none leaves the folder or the bucket that it belongs to.
 *
 * @throws TypeError
 */
export function checkBlobKey(key: string): void {
  const segments = key.split("/");
  if (key.length <= 800 && segments.every((each) => segment.test(each.replace(/^~/, "_")))) return;
  throw new TypeError(`Not the key of a blob: ${JSON.stringify(key.slice(0, 100))}`);
}
