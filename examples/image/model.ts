/** An image that a model has made. */
export interface Picture {
  /** The file. */
  readonly bytes: Uint8Array<ArrayBuffer>;
  /** Its media type, such as `image/png`. */
  readonly mediaType: string;
  /** Name of the file. An image that was changed keeps the name of the first one. */
  readonly name: string;
  /** The subject of the image. */
  readonly description: string;
}

/** A request to a model. */
export interface Request {
  /** As the user wrote it. */
  readonly prompt: string;
  /** The image to change. Absent: draws a new one. */
  readonly base?: { readonly bytes: Uint8Array; readonly mediaType: string };
  /** Idempotency key: a request that is repeated after a crash has the same one. */
  readonly key: string;
  /** Aborted when the image is no longer wanted. */
  readonly signal: AbortSignal;
}

/** A model that draws. `scripted.ts` has one without a network. */
export interface ImageModel {
  /** Whether a message requests a change of an image, not a new one. */
  changes(message: string): Promise<boolean>;
  /** Draws an image; `undefined` if it cannot. */
  draw(request: Request): Promise<Picture | undefined>;
}
