/** The names that are nearest to another one: a third of their letters away at most, or two of five. Empty: none is near. */
export function nearestOf(name: string, known: readonly string[]): string {
  const wanted = name.toLowerCase().slice(0, 40);
  let near: readonly string[] = [];
  for (let letters = 0; near.length === 0 && letters < 9; letters += 1) {
    near = known.filter(
      ({ length }, at) =>
        letters <= Math.max(length / 3, length > 4 ? 2 : 1) && isNear(wanted, (known[at] ?? "").toLowerCase(), letters),
    );
  }
  return near.join(" or ");
}

/** Whether so many letters, added, removed or replaced, make one word of the other. */
function isNear(one: string, other: string, letters: number): boolean {
  if (one === other || letters < 0) return letters >= 0;
  const [rest, otherRest] = [one.slice(1), other.slice(1)];
  return one[0] === other[0]
    ? isNear(rest, otherRest, letters)
    : isNear(rest, otherRest, --letters) || isNear(one, otherRest, letters) || isNear(rest, other, letters);
}

/** The end of an error about a name that there is not: the name that was probably meant, or all that there are. */
export function meantBy(name: string, known: readonly string[]): string {
  const near = nearestOf(name, known);
  return near === "" ? `. There are ${known.join(", ")}` : `: ${near} is meant`;
}
