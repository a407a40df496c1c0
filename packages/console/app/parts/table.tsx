import type { ComponentChildren } from "preact";

interface TableProps {
  readonly title: string;
  /** Names of the columns. The column of acts has an empty name. */
  readonly names: readonly string[];
  readonly rows: readonly (readonly ComponentChildren[])[];
}

/** A table with a heading. It scrolls if the window is narrow. */
export function Table({ title, names, rows }: TableProps) {
  if (rows.length === 0) return null;
  return (
    <>
      <h2>{title}</h2>
      <div class="scroll" tabIndex={0} role="group" aria-label={title}>
        <table>
          <thead>
            <tr>
              {names.map((name) =>
                name === "" ? (
                  <td key="acts" />
                ) : (
                  <th key={name} scope="col">
                    {name}
                  </th>
                ),
              )}
            </tr>
          </thead>
          <tbody>
            {rows.map((row, at) => (
              <tr key={at}>
                {row.map((cell, of) => (
                  <td key={of} dir="auto">
                    {cell}
                  </td>
                ))}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </>
  );
}
