import { expect } from "vitest";
import { browse } from "./logins.ts";

/** Acts like a person who opens the link of an `oauth` request (A2A 1.0 §7.6): continues, logs in at the provider, and returns. */
export async function logInAt(link: string): Promise<Response> {
  const request = new URL(link).searchParams.get("request") ?? "";
  const body = new URLSearchParams({ request, decision: "continue" });
  const sent = await fetch(link, { method: "POST", body, redirect: "manual" });
  expect(sent.status).toBe(303);
  const cookie = sent.headers.get("set-cookie")?.split(";")[0] ?? "";
  const back = await browse(sent.headers.get("location") ?? "", link.split("?")[0] ?? "");
  return fetch(back, { headers: { cookie } });
}
