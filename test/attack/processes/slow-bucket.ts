import { s3Blobs, type BlobStore, type S3Like } from "@parley/server/store";

/** The number of parts that are sent in parallel, as by the S3 client. */
const partsAtOnce = 4;
/** The time that a part takes, in milliseconds. */
const partTime = 40;

/** Creates a slow bucket that stores only sizes. Each upload holds as many parts in memory as an upload of the S3 client. */
export function slowBucket(): BlobStore {
  const sizes = new Map<string, number>();
  const client: Pick<S3Like, "putObject" | "presignedGetObject" | "listObjectsGrouped" | "deleteObject"> = {
    async putObject(name, data, { partSize }) {
      const under = new Set<Promise<void>>();
      let part: Uint8Array[] = [];
      let [filled, size] = [0, 0];
      const send = async (): Promise<void> => {
        const held = Buffer.concat(part);
        [part, filled] = [[], 0];
        await new Promise((resolve) => setTimeout(resolve, partTime));
        size += held.length;
      };
      const begin = (): void => {
        const sent = send().finally(() => under.delete(sent));
        under.add(sent);
      };
      for await (const bytes of data as unknown as AsyncIterable<Uint8Array>) {
        part.push(bytes);
        filled += bytes.length;
        if (filled < partSize) continue;
        begin();
        if (under.size >= partsAtOnce) await Promise.race(under);
      }
      begin();
      await Promise.all(under);
      sizes.set(name, size);
    },
    presignedGetObject: async (name) => `https://bucket.example.com/${name}`,
    async *listObjectsGrouped({ prefix }) {
      for (const [key, size] of sizes) if (key.startsWith(prefix)) yield { type: "Object", key, size };
      return undefined;
    },
    deleteObject: async (name) => void sizes.delete(name),
  };
  return s3Blobs(client as S3Like);
}
