// Offline responses: answers `routes` and `match` from the last good set while the registry is away, so that an SDK
// beside the sidecar can start. Only callers with the sidecar's own key get them: which other keys are good, the
// registry alone knows. The matcher is the proxy's own.
import { createHash, timingSafeEqual } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import { setImmediate as breathe } from 'node:timers/promises';
import { matchRoute, type MatchRules } from '../../../domain/explanation.ts';
import { renderProblem } from '../../../domain/problem.ts';
import { readMatchQuery } from '../../../domain/routing/match-query.ts';
import type { Route } from '../../../domain/routing/route.ts';
import type { Snapshot } from '../../../domain/routing/snapshot.ts';
import type { Clock } from '../../../host/clock.ts';
import type { OwnResponse } from '../../../host/respond.ts';
import { feedPieces } from '../../routes/feed-writer.ts';
import type { LastGoodSet } from '../sync.ts';

type OfflineOptions = {
  readonly apiKey: string;
  readonly lastGood: () => LastGoodSet | undefined;
  readonly snapshot: () => Snapshot | undefined;
  /** Rules of the proxy of this process. */
  readonly rules: () => MatchRules;
  readonly clock: Pick<Clock, 'now'>;
};

export type OfflineResponses = {
  /** The answer, or undefined if only the registry can give one. `path` is without a slash at its end. */
  readonly answer: (req: IncomingMessage, path: string, query: string) => Promise<OwnResponse> | undefined;
};

const ROUTES = '/v1/protected-routes/routes';
const MATCH = '/v1/protected-routes/match';
const BEARER = /^Bearer +([\x21-\x7e]{1,16384})$/i;

export function createOfflineResponses({ apiKey, lastGood, snapshot, rules, clock }: OfflineOptions): OfflineResponses {
  const own = digestOf(apiKey);
  let made: { readonly routes: readonly Route[]; readonly body: Promise<Buffer> } | undefined;

  const isOwn = (req: IncomingMessage): boolean => {
    const [header, ...others] = req.headersDistinct['authorization'] ?? [];
    const key = others.length === 0 ? BEARER.exec(header ?? '')?.[1] : undefined;
    return key !== undefined && timingSafeEqual(digestOf(key), own);
  };

  const routes = async (req: IncomingMessage, { set, confirmedAt }: LastGoodSet): Promise<OwnResponse> => {
    const headers = [
      ...[
        'Cache-Control',
        'private, no-cache',
        'Age',
        String(Math.max(0, Math.round((clock.now() - confirmedAt) / 1000))),
      ],
      ...(set.registryId === undefined ? [] : ['Tollgate-Registry', set.registryId]),
      ...(set.revision === undefined ? [] : ['Tollgate-Revision', String(set.revision)]),
    ];
    if (set.etag !== undefined && namesTag(req.headers['if-none-match'], set.etag)) {
      return { status: 304, headers: [...headers, 'ETag', set.etag], body: '' };
    }
    if (made?.routes !== set.routes) made = { routes: set.routes, body: writeFeed(set.routes) };
    return { status: 200, headers: [...headers, 'Content-Type', 'application/json'], body: await made.body };
  };

  // A promise like the other: a defect rejects it and does not end the process.
  const match = async (query: string, current: Snapshot): Promise<OwnResponse> => {
    const question = readMatchQuery(query);
    if ('code' in question) return renderProblem(question);
    const body = JSON.stringify(matchRoute(current, { ...question, rules: rules(), nowMs: clock.now() }));
    return { status: 200, headers: ['Content-Type', 'application/json', 'Cache-Control', 'no-store'], body };
  };

  return {
    answer: (req, path, query) => {
      if (req.method !== 'GET' && req.method !== 'HEAD') return undefined;
      if ((path !== ROUTES && path !== MATCH) || !isOwn(req)) return undefined;
      const good = lastGood();
      const current = snapshot();
      if (good === undefined || current === undefined) return undefined;
      return path === ROUTES ? routes(req, good) : match(query, current);
    },
  };
}

async function writeFeed(routes: readonly Route[]): Promise<Buffer> {
  const parts: Buffer[] = [];
  for (const piece of feedPieces(routes)) {
    parts.push(Buffer.from(piece));
    await breathe();
  }
  return Buffer.concat(parts);
}

/** Says whether an If-None-Match names `tag`, compared weakly (RFC 9110 section 13.1.2). */
function namesTag(header: string | undefined, tag: string): boolean {
  const opaque = tag.replace(/^W\//, '');
  return header !== undefined && header.split(',').some((given) => given.trim().replace(/^W\//, '') === opaque);
}

/** Hashes a key, so that comparing takes the same time for every key of any length. */
function digestOf(key: string): Buffer {
  return createHash('sha256').update(key).digest();
}
