/* How wide text is on a terminal. */

/** Characters of two columns: those of East Asia, and emoji. */
const wide =
  /[\u1100-\u115f\u2e80-\u303e\u3041-\ua4cf\ua960-\ua97f\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff01-\uff60\uffe0-\uffe6\u{1f1e6}-\u{1f1ff}\u{20000}-\u{3fffd}]|\p{Emoji_Presentation}/u;
/** Characters that are shown on top of the one before them. */
const onlyNone = /^[\p{Mn}\p{Me}\p{Cf}]+$/u;

const segmenter = new Intl.Segmenter(undefined, { granularity: "grapheme" });

/** Columns that a text takes on a terminal. It must have no escape sequences. */
export function widthOf(text: string): number {
  if (/^[\u0020-\u024f]*$/.test(text)) return text.length;
  let width = 0;
  for (const { segment } of segmenter.segment(text)) width += widthOfSegment(segment);
  return width;
}

function widthOfSegment(segment: string): number {
  if (wide.test(segment) || segment.includes("\ufe0f")) return 2;
  return onlyNone.test(segment) ? 0 : 1;
}

/** The beginning of a text that fits into so many columns, and how much is left out. `how`: what shows the rest. */
export function fitted(text: string, columns: number, how: string): string {
  // Most texts are much shorter or much longer than a line, and a long one need not be measured.
  const start = text.slice(0, columns * 4);
  if (start.length === text.length && widthOf(text) <= columns) return text;
  const note = (left: number): string => `… (${left.toLocaleString("en")} more characters; ${how})`;
  const room = columns - note(text.length).length;
  let width = 0;
  let kept = "";
  for (const { segment } of segmenter.segment(start)) {
    width += widthOfSegment(segment);
    if (width > room) break;
    kept += segment;
  }
  return `${kept}${note(text.length - kept.length)}`;
}
