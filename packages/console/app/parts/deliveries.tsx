import { readDeliveryId, webhookHeaders } from "@parley/a2a/internal/webhooks/names";
import { webhooks, type RequestRecord } from "../../src/api.ts";
import { linkTo } from "../route.ts";
import type { Exchange } from "../wire.ts";
import { Table } from "./table.tsx";
import { Time } from "./time.tsx";

/** Data from the headers of a received webhook. Its sender is not verified. */
interface Delivery {
  /** Id of the webhook config; if the sender does not number its events, id of the event. */
  readonly stream: string;
  /** Number of the event among the events of its config. Absent: the sender does not number its events. */
  readonly event?: number;
  /** Number of the attempt, from 1. Absent: the sender does not report it. */
  readonly attempt?: number;
}

/** `undefined`: not a webhook, or one without an ID. */
export function deliveryOf({ agent, headers }: RequestRecord): Delivery | undefined {
  if (agent !== webhooks) return undefined;
  const valueOf = (name: string): string => headers.find(([known]) => known === name)?.[1] ?? "";
  const id = valueOf(webhookHeaders.id);
  if (id === "") return undefined;
  const { stream = id, sequence } = readDeliveryId(id) ?? {};
  const [attempt] = /^[1-9]\d{0,8}$/.exec(valueOf(webhookHeaders.attempt)) ?? [];
  return {
    stream,
    ...(sequence !== undefined && { event: sequence }),
    ...(attempt !== undefined && { attempt: Number(attempt) }),
  };
}

/** Short texts for a received webhook, such as `event 3` and `attempt 2`. */
export function deliveryTexts(request: RequestRecord): readonly string[] {
  const { event, attempt } = deliveryOf(request) ?? {};
  return [...(event === undefined ? [] : [`event ${event}`]), ...(attempt === undefined ? [] : [`attempt ${attempt}`])];
}

interface DeliveriesProps {
  readonly of: Exchange;
  readonly all: readonly Exchange[];
}

/** All received deliveries of the same webhook config, newest first. */
export function Deliveries({ of, all }: DeliveriesProps) {
  const stream = deliveryOf(of.request)?.stream;
  if (stream === undefined) return null;
  const found = all.flatMap((exchange) => {
    const delivery = deliveryOf(exchange.request);
    return delivery?.stream === stream ? [{ ...exchange, delivery }] : [];
  });
  const rows = found
    .slice(-100)
    .toReversed()
    .map(({ request: { exchange, at }, response, delivery: { event, attempt } }) => [
      <a
        href={linkTo({ screen: "wire", item: String(exchange) })}
        aria-current={exchange === of.request.exchange ? "true" : undefined}
      >
        <Time at={at} />
      </a>,
      event,
      attempt,
      response?.status,
    ]);
  return (
    <>
      <Table title="Deliveries of this webhook" names={["Received", "Event", "Attempt", "Response"]} rows={rows} />
      {found.length > 100 && <p class="quiet">And {found.length - 100} before these.</p>}
    </>
  );
}
