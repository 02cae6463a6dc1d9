// Calls to an OpenID provider: none takes longer than its limit, follows a redirect or reads without end, and one that gets
// no answer that could be used says so in its own error.
import { readBoundedText } from '../../../host/bounded-body.ts';
import { messageOf } from '../../../host/error-message.ts';
import type { FetchKeys } from '../../../host/jwt/key-set.ts';

/** Far above what a discovery document, a key set or a token response has. */
const MOST_BYTES = 256 * 1024;
const TOO_MANY_REQUESTS = 429;
const SERVER_ERROR = 500;

/** The provider does not answer, or says that it cannot now. */
export class ProviderAway extends Error {}
/** It answers, and its answer says that it is not the provider that the configuration means. */
export class ProviderUnusable extends ProviderAway {}

type ProviderCall = {
  readonly method?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: NonNullable<RequestInit['body']> | null | undefined;
};

export function createProviderFetch(
  fetch: FetchKeys,
  callMs: number,
): (url: string, call: ProviderCall) => Promise<Response> {
  return async (url, { method = 'GET', headers = {}, body }) => {
    const { origin, pathname } = new URL(url);
    const away = (why: string): ProviderAway => new ProviderAway(`${method} ${origin}${pathname}: ${why}`);
    let response: Response;
    let text: string;
    try {
      const signal = AbortSignal.timeout(callMs);
      response = await fetch(url, { method, headers, body: body ?? null, redirect: 'manual', signal });
      text = await readBoundedText(response, MOST_BYTES, 'the answer is too large');
    } catch (error) {
      throw away(messageOf(rootOf(error)));
    }
    const { status } = response;
    if (status === TOO_MANY_REQUESTS || status >= SERVER_ERROR) throw away(`it answered ${status}`);
    return new Response(text === '' ? null : text, { status, headers: response.headers });
  };
}

/** What a failed fetch says lies in its cause. */
function rootOf(error: unknown): unknown {
  return error instanceof Error && error.cause instanceof Error ? rootOf(error.cause) : error;
}
