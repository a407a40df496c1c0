/** What the caller can display. */
export interface Outputs {
  readonly svg: boolean;
  readonly json: boolean;
  /** Media type of text with a little markup, which is readable as plain text too. */
  readonly text: string;
}

/**
 * Which outputs to send, by the media types that the caller accepts. No media types means any. Text is always sent, because every answer
 * has some.
 */
export function outputsFor(modes: readonly string[]): Outputs {
  const accepts = (type: string): boolean => {
    const [group] = type.split("/");
    return (
      modes.length === 0 ||
      modes.some((mode) => {
        const asked = mode.split(";", 1)[0]?.trim().toLowerCase();
        return asked === type || asked === `${group}/*` || asked === "*/*" || asked === "*";
      })
    );
  };
  return {
    svg: accepts("image/svg+xml"),
    json: accepts("application/json"),
    text: accepts("text/markdown") ? "text/markdown" : "text/plain",
  };
}
