interface TimeProps {
  /** ISO 8601, or milliseconds since the Unix epoch. Absent: nothing is shown. */
  readonly at: string | number | undefined;
  /** Text to show instead of the time, such as an age. */
  readonly text?: string;
  /** Whether to show the zone next to the time. Default: only in the tooltip. */
  readonly withZone?: boolean;
}

/** A time in the zone of the browser. The tooltip has the zone, and the time in UTC. */
export function Time({ at, text, withZone = false }: TimeProps) {
  if (at === undefined) return null;
  const date = new Date(at);
  // Agents send times as text, which may not be a valid time.
  if (Number.isNaN(date.getTime())) return <>{text ?? String(at)}</>;
  const zoned = date.toLocaleString([], { timeZoneName: "short" });
  return (
    <time dateTime={date.toISOString()} title={`${zoned} (${date.toISOString()})`}>
      {text ?? (withZone ? zoned : date.toLocaleString())}
    </time>
  );
}
