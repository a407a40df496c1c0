import { s3Blobs } from "@parley/server/store";
import { blobStoreContract } from "@parley/testing";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { credentials } from "./support/s3-server.ts";
import { openBucket, type Bucket } from "./support/s3.ts";

let bucket: Bucket;
beforeAll(async () => {
  bucket = await openBucket();
});
afterAll(() => bucket.close());

blobStoreContract({ describe, it, expect }, { open: () => s3Blobs(bucket.client, { prefix: "below/" }) });

describe("blobs in a bucket", () => {
  it("name neither credentials nor URLs when the bucket fails", async () => {
    const own = await openBucket();
    const store = s3Blobs(own.client, { prefix: own.server === undefined ? "" : "x/" });
    if (own.server !== undefined) own.server.failing = 503;
    else await own.close();
    const failures =
      own.server === undefined
        ? []
        : [() => store.get("a/b"), () => store.list({ prefix: "", limit: 1 }), () => store.delete(["a/b"])];
    for (const failure of failures) {
      const error = await failure().then(
        () => undefined,
        (thrown: unknown) => thrown,
      );
      expect(error).toMatchObject({ code: "Unavailable", message: "Blob store request failed: 503 SlowDown" });
      const text = JSON.stringify(error) + String((error as Error).stack) + String((error as Error).cause);
      expect(text).not.toContain(credentials.secretKey);
      expect(text).not.toContain("X-Amz");
      expect(text).not.toContain(credentials.accessKey);
    }
    await own.close();
  });
});
