import { S3Client } from "@bradenmacdonald/s3-lite-client";
import { credentials, startS3, type S3Server } from "./s3-server.ts";

/** A bucket, with its client. */
export interface Bucket {
  readonly client: S3Client;
  /** The test double, or `undefined` for a real server. */
  readonly server: S3Server | undefined;
  close(): Promise<void>;
}

/**
 * Opens a bucket on the server in `S3_TEST_URL` (`http://KEY:SECRET@127.0.0.1:7070/bucket`), such as versitygw or MinIO. By default, opens a
 * bucket of a test double in this process.
 */
export async function openBucket(): Promise<Bucket> {
  const given = process.env["S3_TEST_URL"];
  if (given !== undefined) {
    const { protocol, host, username, password, pathname } = new URL(given);
    const client = clientOf(`${protocol}//${host}`, pathname.slice(1), username, password);
    return { client, server: undefined, close: () => Promise.resolve() };
  }
  const server = await startS3();
  const client = clientOf(server.url, "agents", credentials.accessKey, credentials.secretKey);
  return { client, server, close: () => server.close() };
}

function clientOf(endPoint: string, bucket: string, accessKey: string, secretKey: string): S3Client {
  return new S3Client({ endPoint, bucket, region: "us-east-1", accessKey, secretKey, pathStyle: true });
}
