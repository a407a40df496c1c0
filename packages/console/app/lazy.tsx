import { signal } from "@preact/signals";
import type { ComponentType } from "preact";

/** A component that loads its code when it is first rendered. */
export function lazily<Props extends object>(load: () => Promise<ComponentType<Props>>): ComponentType<Props> {
  const loaded = signal<{ readonly Shown: ComponentType<Props> } | undefined>(undefined);
  let loading = false;
  return function Lazy(props: Props) {
    if (loaded.value !== undefined) {
      const { Shown } = loaded.value;
      return <Shown {...props} />;
    }
    if (!loading) {
      loading = true;
      void load().then((Shown) => (loaded.value = { Shown }));
    }
    return <p class="quiet empty">Loading …</p>;
  };
}
