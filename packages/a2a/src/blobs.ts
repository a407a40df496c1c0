/**
 * Stores for large files: the port, buckets of S3, and the deletion of what belongs to an owner. Files of the file system are in
 * `@parley/node/blobs`.
 * @packageDocumentation
 */

export type { BlobContent, BlobEntry, BlobLink, BlobPage, BlobQuery, BlobRange, BlobStore } from "./blobs/port.ts";
export { s3Blobs, type S3BlobsOptions, type S3Like } from "./blobs/s3.ts";
export { checkBlobKey } from "./blobs/segments.ts";
export { deleteBlobsOf, deleteIncomingBlobs, type BlobScope } from "./blobs/delete.ts";
export { withBlobs } from "./blobs/deliver.ts";
export { blobsBelongTo } from "./blobs/mark.ts";
