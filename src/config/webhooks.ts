// The keys of the `webhooks` section: endpoints that events are sent to. They come from configuration alone, and go out to public
// addresses over https unless the file allows more.
import { isIP } from 'node:net';
import { z } from 'zod';
import { EVENT_TYPES, EVERY_EVENT } from '../domain/webhooks/event-types.ts';
import { keyOfSecret } from '../domain/webhooks/webhook-secret.ts';
import { isLoopback } from '../host/nearby.ts';
import { isPublicAddress } from '../host/public-address.ts';
import { choice, described, duration, flag, hostOf, identifier, text } from './fields.ts';
import { key, section } from './keys.ts';
import { isMap, type Issue } from './problems.ts';

const MOST_ENDPOINTS = 20;
const MOST_SECRETS = 3;
const URL_ADVICE = 'an https URL without user, password and fragment, such as https://hooks.example.com/tollgate';
const SECRET_ADVICE =
  'whsec_ and the base64 of 24 to 64 random bytes, such as what `echo whsec_$(openssl rand -base64 32)` prints';

function webhookSecret() {
  return text(SECRET_ADVICE, (value) => keyOfSecret(value) !== undefined);
}

const endpoint = section({
  id: key(
    'id',
    identifier('a name of this endpoint'),
    'The name of this endpoint in lists, logs, metrics and commands.',
  ),
  url: key(
    'url',
    text(URL_ADVICE, (value) => targetOf(value) !== undefined),
    'Events are sent here by POST.',
  ),
  secret: key(
    'secrets',
    described(
      z.preprocess(
        (value) => (Array.isArray(value) || value === undefined ? value : [value]),
        z
          .array(webhookSecret(), { error: `is missing; write ${SECRET_ADVICE}` })
          .min(1, 'is empty; write one secret')
          .max(MOST_SECRETS, `has more than ${MOST_SECRETS} secrets; keep those that receivers still verify with`),
      ),
      `a secret, or a list of up to ${MOST_SECRETS}`,
    ),
    'The secret that signs events (Standard Webhooks). Several sign side by side, for the time in which one is replaced.',
  ),
  events: key(
    'events',
    z
      .array(choice([EVERY_EVENT, ...EVENT_TYPES]))
      .min(1, 'is empty; write types of events, or ["*"]')
      .default([EVERY_EVENT]),
    'The types of events that it wants. `*` is every type but `charge.claimed`, which has to be named.',
  ),
  timeout: key(
    'timeoutMs',
    duration(1000, 30_000).prefault('15s'),
    'How long an attempt may take, from connecting to the head of the answer.',
  ),
  allow_private: key(
    'allowPrivate',
    flag().default(false),
    'True: plain http, and loopback and private addresses, will do.',
  ),
});

export function webhooksSection() {
  return z
    .array(endpoint)
    .max(MOST_ENDPOINTS, `has more than ${MOST_ENDPOINTS} endpoints; let one pass events on`)
    .default([]);
}

/** An endpoint as it is configured. */
export type WebhookConfig = z.output<ReturnType<typeof webhooksSection>>[number];

/** Rules that need more than one key. */
export function webhookIssues(raw: Readonly<Record<string, unknown>>): Issue[] {
  const { webhooks } = raw;
  if (!Array.isArray(webhooks)) return [];
  return [...placeIssues(raw), ...webhooks.flatMap((each: unknown, index) => targetIssues(each, index))];
}

function placeIssues(raw: Readonly<Record<string, unknown>>): Issue[] {
  const { registry, charges } = raw;
  if (registry !== undefined || (isMap(charges) && charges['store'] !== undefined)) return [];
  const message =
    'stands in a sidecar whose registry keeps the charges; write it into the configuration of the registry';
  return [{ path: ['webhooks'], at: 'key', message }];
}

function targetIssues(each: unknown, index: number): Issue[] {
  if (!isMap(each) || typeof each['url'] !== 'string') return [];
  const path = ['webhooks', index, 'url'];
  const target = targetOf(each['url']);
  if (target === undefined || each['allow_private'] === true || each['allow_private'] === 'true') return [];
  const host = hostOf(target);
  if (isLoopback(host) || (isIP(host) !== 0 && !isPublicAddress(host)))
    return [{ path, message: 'is no public address; write one, or allow_private: true beside it' }];
  if (target.protocol === 'https:') return [];
  return [{ path, message: 'is plain http; write https, or allow_private: true beside it' }];
}

/** The URL of a target; undefined if it is none. */
function targetOf(value: string): URL | undefined {
  // The URL parser takes backslashes, tabs and missing slashes for what they are not.
  if (!/^https?:\/\/[^\s\\#@]+$/i.test(value) || !URL.canParse(value)) return undefined;
  return new URL(value);
}
