// Answers GET and HEAD of `/openapi.json` and `/llms.txt` from memory. They need no store and no upstream. The documents
// are made elsewhere, once for each change of the routes; here they are written once for each origin that is asked for.
import type { IncomingMessage } from 'node:http';
import { LRUCache } from 'lru-cache';
import { LLMS_PATH, OPENAPI_PATH, renderPublication, type Publication } from '../domain/discovery/publication.ts';
import { namesTag } from '../host/entity-tag.ts';
import type { OwnResponse } from '../host/respond.ts';
import type { RequestFacts, ResponseOutcome } from './outcome.ts';

type DocumentRequest = Pick<RequestFacts, 'method' | 'path' | 'publicOrigin'> & {
  readonly req: Pick<IncomingMessage, 'headers'>;
};

/** Answers a request for a document. Undefined: it is for something else. `not_ready`: no document was made yet. */
export type PublicDocumentsAnswer = (asked: DocumentRequest) => ResponseOutcome | 'not_ready' | undefined;

/** The publication in force: read at each request. */
export type PublicationInForce = { readonly publication: Publication | undefined };

type DocumentResponses = {
  readonly tag: string;
  readonly whole: ResponseOutcome;
  readonly unmodified: ResponseOutcome;
};
type PublicationResponses = {
  readonly of: Publication;
  readonly openapi: DocumentResponses;
  readonly llms: DocumentResponses;
};

/** Origins by which clients call one API: a Host that is made up pushes out no more than these. */
const ORIGINS = 4;

export function createPublicDocuments(published: PublicationInForce): PublicDocumentsAnswer {
  const written = new LRUCache<string, PublicationResponses>({ max: ORIGINS });
  return (asked) => {
    const { method, path } = asked;
    if (path !== OPENAPI_PATH && path !== LLMS_PATH) return undefined;
    if (method !== 'GET' && method !== 'HEAD') return undefined;
    const { publication } = published;
    if (publication === undefined) return 'not_ready';
    const { publicOrigin: origin } = asked;
    let both = written.get(origin);
    if (both?.of !== publication) written.set(origin, (both = write(publication, origin)));
    const { tag, whole, unmodified } = path === OPENAPI_PATH ? both.openapi : both.llms;
    const known = asked.req.headers['if-none-match'];
    return known !== undefined && namesTag(known, tag, 'weak') ? unmodified : whole;
  };
}

function write(publication: Publication, origin: string): PublicationResponses {
  const { openapi, llms } = renderPublication(publication, origin);
  // Origins have one document each: a tag names both, and needs no look at the text.
  const tag = `"${publication.digest}-${Buffer.from(origin).toString('base64url')}"`;
  return {
    of: publication,
    openapi: respondWith(openapi, 'application/json', tag),
    llms: respondWith(llms, 'text/plain; charset=utf-8', tag),
  };
}

function respondWith(text: string, type: string, tag: string): DocumentResponses {
  const caching = ['Cache-Control', 'public, max-age=300', 'Access-Control-Allow-Origin', '*', 'ETag', tag];
  const headers = ['Content-Type', type, ...caching];
  const bodyBytes = Buffer.byteLength(text);
  // Text beyond ASCII is encoded once, not for each request.
  const body = bodyBytes === text.length ? text : Buffer.from(text);
  return {
    tag,
    whole: outcome({ status: 200, headers, body, bodyBytes }),
    unmodified: outcome({ status: 304, headers: caching, body: '' }),
  };
}

function outcome(response: OwnResponse): ResponseOutcome {
  return {
    kind: 'response',
    response,
    outcome: 'discovery',
    reason: undefined,
    chargeId: undefined,
    routeId: undefined,
  };
}
