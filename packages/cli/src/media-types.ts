import { Mime } from "mime/lite";
import standardTypes from "mime/types/standard.js";

// Types that agents often get and the standard table lacks. In that table `ts` is a video stream.
const types = new Mime(standardTypes, { "application/vnd.apache.parquet": ["parquet"] });
types.define(
  {
    "application/x-ndjson": ["ndjson", "jsonl"],
    "text/x-python": ["py"],
    "text/x-typescript": ["ts", "tsx", "mts"],
  },
  true,
);

/** Media type by the extension of a file name. */
export function mediaTypeOf(name: string): string | undefined {
  return types.getType(name) ?? undefined;
}

/** A file extension for a media type, without its dot. */
export function extensionOf(mediaType: string): string | undefined {
  return types.getExtension(mediaType) ?? undefined;
}
