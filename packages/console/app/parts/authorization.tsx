import type { Part, Task } from "@parley/a2a";
import { canonicalJson } from "@parley/a2a/internal/jws/jcs";
import {
  answerAuthorization,
  memberOf,
  readAuthorization,
  type AuthorizationAnswer,
  type AuthorizationRequest,
} from "@parley/a2a/internal/protocol/index";
import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { decide } from "../decisions.ts";
import { Time } from "./time.tsx";
import { WebLink } from "./markdown.tsx";

interface AuthorizationProps {
  readonly task: Task;
  readonly request: AuthorizationRequest;
  readonly onAnswer: (parts: readonly Part[]) => Promise<void>;
}

/** An authorization request and its expiry. The user answers it through a link, or here if the agent accepts a message. */
export function Authorization({ task, request, onAnswer }: AuthorizationProps) {
  const { id: requestId, form, url, expiresAt, inMessage = false } = request;
  const { message, timestamp } = task.status;
  const digest = useDigest(message?.parts);
  const isExpired = useExpired(expiresAt);
  const about = { taskId: task.id, requestId, form, ...(digest !== undefined && { digest }) };
  useEffect(() => decide(about), [digest]);
  const answer = (given: AuthorizationAnswer): void => void onAnswer([answerAuthorization(request, given)]);
  return (
    <section class="asked" aria-label="Authorization">
      <p>
        The agent asks for an authorization: <strong>{form}</strong>
      </p>
      <dl>
        <dt>Request</dt>
        <dd>{requestId}</dd>
        {timestamp !== undefined && (
          <>
            <dt>Asked</dt>
            <dd>
              <Time at={timestamp} withZone />
            </dd>
          </>
        )}
        {expiresAt !== undefined && (
          <>
            <dt>{isExpired ? "Expired" : "Expires"}</dt>
            <dd class={isExpired ? "problem" : undefined}>
              <Time at={expiresAt} withZone />
            </dd>
          </>
        )}
        {digest !== undefined && (
          <>
            <dt>Digest</dt>
            <dd>
              <code>{digest}</code>
            </dd>
          </>
        )}
      </dl>
      {isExpired && <p class="problem">The request has expired and can no longer be answered.</p>}
      {!isExpired && url !== undefined && (
        <p>
          Authorize at <WebLink href={url}>{hostOf(url)}</WebLink>
          <span class="quiet"> {url}</span>
        </p>
      )}
      {!isExpired && inMessage && <InMessage form={form} onAnswer={answer} />}
    </section>
  );
}

interface InMessageProps {
  readonly form: string;
  readonly onAnswer: (given: AuthorizationAnswer) => void;
}

function InMessage({ form, onAnswer }: InMessageProps) {
  const secret = useSignal("");
  const isApproval = form === "approval";
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault();
        onAnswer({ credential: isApproval ? true : secret.value });
      }}
    >
      {!isApproval && (
        <label>
          Secret
          <input
            type="password"
            required
            autocomplete="off"
            value={secret.value}
            onInput={({ currentTarget }) => (secret.value = currentTarget.value)}
          />
        </label>
      )}
      <div class="tools">
        <button type="submit">{isApproval ? "Approve" : "Send secret"}</button>
        <button type="button" onClick={() => onAnswer({ denied: true })}>
          Deny
        </button>
      </div>
    </form>
  );
}

function hostOf(url: string): string {
  return URL.canParse(url) ? new URL(url).host : url;
}

/** SHA-256 of the question's parts as canonical JSON (RFC 8785). `undefined`: pending, or not available. */
function useDigest(parts: readonly Part[] | undefined): string | undefined {
  const digest = useSignal<string | undefined>(undefined);
  const json = canonicalOf(parts ?? []);
  useEffect(() => {
    if (json === undefined) return void (digest.value = undefined);
    // Browsers provide `crypto.subtle` only over TLS or on localhost.
    const subtle: SubtleCrypto | undefined = globalThis.isSecureContext ? crypto.subtle : undefined;
    void subtle?.digest("SHA-256", new TextEncoder().encode(json)).then((hash) => {
      digest.value = `sha256:${[...new Uint8Array(hash)].map((byte) => byte.toString(16).padStart(2, "0")).join("")}`;
    });
  }, [json]);
  return digest.value;
}

/** `undefined`: the parts have no canonical form, for example because a text has a lone surrogate. */
function canonicalOf(parts: readonly Part[]): string | undefined {
  try {
    return canonicalJson(parts);
  } catch {
    return undefined;
  }
}

/** Maximum delay of a browser timer, in milliseconds. */
const maxTimerMs = 2 ** 31 - 1;

/** Whether a time has passed. Rerenders the component at that time. */
export function useExpired(at: string | undefined): boolean {
  const now = useSignal(Date.now());
  const left = at === undefined ? Infinity : Date.parse(at) - now.value;
  useEffect(() => {
    if (left <= 0 || left === Infinity) return;
    const timer = setTimeout(() => (now.value = Date.now()), Math.min(left, maxTimerMs));
    return () => clearTimeout(timer);
  }, [left]);
  return left <= 0;
}

/** A part of the history that requests an authorization or answers a request. */
export function AuthorizationPart({ part }: { readonly part: Part }) {
  const member = memberOf(part);
  const asked = readAuthorization({ parts: [part] });
  if (member === undefined) return null;
  const { id, received, denied } = member;
  const name = typeof id === "string" ? id.slice(0, 500) : "";
  if (asked !== undefined) {
    const { form, expiresAt } = asked;
    return (
      <p class="quiet">
        Asked for an authorization: {form}, request {name}
        {expiresAt !== undefined && (
          <>
            , until <Time at={expiresAt} withZone />
          </>
        )}
      </p>
    );
  }
  return (
    <p class="quiet">
      {denied === true ? "Denied" : "Gave a credential for"} request {name}
      {typeof received === "string" && (
        <>
          , receipt <code>{received.slice(0, 200)}</code>
        </>
      )}
    </p>
  );
}
