/** What the caller can show. */
export interface Outputs {
  readonly svg: boolean;
  readonly json: boolean;
  /** Media type of text with a little markup; plain text can show it too. */
  readonly text: string;
}

/** Of what the caller said that it accepts; nothing said means anything. Words always go: there is no answer without. */
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
