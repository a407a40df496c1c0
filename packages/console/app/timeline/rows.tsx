import { useSignal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import type { JSX } from "preact";

const rowHeight = 26;

interface RowsProps<Item> {
  readonly items: readonly Item[];
  readonly label: string;
  readonly chosen: Item | undefined;
  readonly onChoose: (item: Item) => void;
  readonly row: (item: Item) => JSX.Element;
}

/** A virtualized list: renders only the visible rows. Arrow keys select. */
export function Rows<Item>({ items, label, chosen, onChoose, row }: RowsProps<Item>) {
  const box = useRef<HTMLDivElement>(null);
  const top = useSignal(0);
  const at = chosen === undefined ? -1 : items.indexOf(chosen);
  useEffect(() => {
    if (box.current === null || at < 0) return;
    const { scrollTop, clientHeight } = box.current;
    if (at * rowHeight < scrollTop) box.current.scrollTop = at * rowHeight;
    else if ((at + 1) * rowHeight > scrollTop + clientHeight)
      box.current.scrollTop = (at + 1) * rowHeight - clientHeight;
  }, [at]);
  const first = Math.max(0, Math.floor(top.value / rowHeight) - 5);
  const visible = items.slice(first, first + 60);
  const choose = (to: number): void => {
    const item = items[Math.min(items.length - 1, Math.max(0, to))];
    if (item !== undefined) onChoose(item);
  };
  const keys: Readonly<Record<string, number>> = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: items.length - 1 };
  return (
    <div
      ref={box}
      class="rows"
      role="listbox"
      aria-label={label}
      aria-activedescendant={at < 0 ? undefined : `row-${at}`}
      tabIndex={0}
      onScroll={({ currentTarget }) => (top.value = currentTarget.scrollTop)}
      onKeyDown={(event) => {
        const to = keys[event.key];
        if (to === undefined) return;
        event.preventDefault();
        choose(to);
      }}
    >
      <div style={{ height: `${items.length * rowHeight}px` }}>
        <div style={{ transform: `translateY(${first * rowHeight}px)` }}>
          {visible.map((item, offset) => (
            <div
              key={first + offset}
              id={`row-${first + offset}`}
              role="option"
              aria-selected={item === chosen}
              aria-posinset={first + offset + 1}
              aria-setsize={items.length}
              class="row"
              onClick={() => onChoose(item)}
            >
              {row(item)}
            </div>
          ))}
        </div>
      </div>
    </div>
  );
}
