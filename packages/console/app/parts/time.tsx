interface TimeProps {
  /** ISO 8601, or milliseconds since the Unix epoch. Absent: nothing is shown. */
  readonly at: string | number | undefined;
  /** Shown instead, such as an age. */
  readonly text?: string;
  /** Whether the zone is shown, and not in the tooltip only. */
  readonly withZone?: boolean;
}

/** A time in the zone of the browser. The tooltip has the zone, and the time in UTC. */
export function Time({ at, text, withZone = false }: TimeProps) {
  if (at === undefined) return null;
  const date = new Date(at);
  // Agents send times as text, which may be none.
  if (Number.isNaN(date.getTime())) return <>{text ?? String(at)}</>;
  const zoned = date.toLocaleString([], { timeZoneName: "short" });
  return (
    <time dateTime={date.toISOString()} title={`${zoned} (${date.toISOString()})`}>
      {text ?? (withZone ? zoned : date.toLocaleString())}
    </time>
  );
}
