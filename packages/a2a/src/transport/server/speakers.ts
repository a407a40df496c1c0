import type { Codec } from "../../wire/codec.ts";
import { cannotServe } from "./refuse.ts";

/**
 * The versions that a binding speaks, the preferred one first.
 *
 * @throws A2AError `InvalidParams` where it speaks none of them.
 */
export function speakers<T extends Codec>(
  name: string,
  codecs: readonly Codec[],
  speaks: (codec: Codec) => codec is T,
): readonly [T, ...T[]] {
  const [first, ...others] = codecs.filter(speaks);
  if (first !== undefined) return [first, ...others];
  const versions = codecs.map(({ version }) => version).join(", ");
  throw cannotServe("bindings", `has ${name}, which speaks none of the versions ${versions}`);
}
