import { useSignal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import { actions, overlay, type Action } from "../actions.ts";

/** The overlay: the list of actions or of keys. Escape closes it. */
export function Overlay() {
  const dialog = useRef<HTMLDialogElement>(null);
  const kind = overlay.value;
  useEffect(() => {
    if (kind !== undefined) dialog.current?.showModal();
  }, [kind]);
  if (kind === undefined) return null;
  return (
    <dialog
      ref={dialog}
      aria-label={kind === "palette" ? "Actions" : "Keys"}
      onClose={() => (overlay.value = undefined)}
    >
      {kind === "palette" ? <Palette /> : <Keys />}
    </dialog>
  );
}

/** Finds actions by name. Arrow keys select, Enter runs. */
function Palette() {
  const filter = useSignal("");
  const at = useSignal(0);
  const wanted = filter.value.toLowerCase().split(/\s+/);
  const found = actions().filter(({ name }) => wanted.every((word) => name.toLowerCase().includes(word)));
  const chosen = Math.min(at.value, found.length - 1);
  const run = (action: Action | undefined): void => {
    if (action === undefined) return;
    overlay.value = undefined;
    void action.run();
  };
  const moves: Readonly<Record<string, number>> = { ArrowDown: 1, ArrowUp: -1 };
  return (
    <>
      <input
        role="combobox"
        aria-label="Action"
        aria-expanded="true"
        aria-controls="actions"
        aria-activedescendant={chosen < 0 ? undefined : `action-${chosen}`}
        placeholder="Search actions"
        autofocus
        value={filter.value}
        onInput={({ currentTarget }) => {
          filter.value = currentTarget.value;
          at.value = 0;
        }}
        onKeyDown={(event) => {
          const move = moves[event.key];
          if (move !== undefined) {
            event.preventDefault();
            at.value = (chosen + move + found.length) % Math.max(1, found.length);
          }
          if (event.key === "Enter") {
            event.preventDefault();
            run(found[chosen]);
          }
        }}
      />
      <ul id="actions" role="listbox" aria-label="Actions">
        {found.slice(0, 100).map((action, n) => (
          <li
            key={n}
            id={`action-${n}`}
            role="option"
            aria-selected={n === chosen}
            dir="auto"
            onClick={() => run(action)}
          >
            {action.name}
            {action.keys !== undefined && <kbd>{action.keys}</kbd>}
          </li>
        ))}
      </ul>
    </>
  );
}

function Keys() {
  const all = [{ name: "Actions", keys: "Ctrl K or ⌘ K" }, ...actions(), { name: "Close", keys: "Esc" }];
  return (
    <>
      <h1>Keyboard shortcuts</h1>
      <dl>
        {all.map(
          ({ name, keys }) =>
            keys !== undefined && (
              <>
                <dt>
                  <kbd>{keys}</kbd>
                </dt>
                <dd>{name}</dd>
              </>
            ),
        )}
      </dl>
      <form method="dialog">
        <button type="submit">Close</button>
      </form>
    </>
  );
}
