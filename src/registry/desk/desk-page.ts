// Serves the desk, the owners' page: one document for all its views, its files, and the redirects that lead to it. Its
// files are made or read at the first request. What stands under /desk/ and is none of these is an endpoint's, or nothing.
import type { IncomingMessage, ServerResponse } from 'node:http';
import { problem, renderProblem, type Problem } from '../../domain/problem.ts';
import { loadOnce } from '../../host/load-once.ts';
import type { Log } from '../../host/log.ts';
import { respond, type OwnResponse } from '../../host/respond.ts';
import { webFileResponse, type WebFiles } from '../../host/web-files.ts';
import { deskHeaders } from './desk-headers.ts';
import { originOf } from './desk-host.ts';
import type { DeskSettings } from './desk-settings.ts';

export const DESK = '/desk/';
const ASSETS = '/desk/assets/';
/** Views of the page, each with the id of what it shows if it shows one. */
const VIEW = /^\/desk\/(?:(?:routes|charges|passes)(?:\/[\w.~%-]{1,256})?|try|plans|keys|receivers|audit|api)?$/;
const FOR_EVER = ['Cache-Control', 'public, max-age=31536000, immutable'];
const ASK_AGAIN = ['Cache-Control', 'no-cache'];

export type DeskPage = {
  /** Answers a request for the page, and any under /desk/ that is refused; the status, or undefined: an endpoint answers. */
  readonly answer: (req: IncomingMessage, res: ServerResponse) => Promise<number | undefined>;
  /** Headers of an endpoint's answer under /desk/; undefined for any other path. */
  readonly headers: (req: IncomingMessage) => readonly string[] | undefined;
};

type DeskPageDeps = {
  readonly settings: () => DeskSettings | undefined;
  /** Rejects with a sentence if there are none. */
  readonly readFiles: () => Promise<WebFiles>;
  readonly log: Log;
};

/** Whether `path` is a view, so that a sign-in may lead there. */
export function isView(path: string): boolean {
  return VIEW.test(path);
}

export function createDeskPage({ settings, readFiles, log }: DeskPageDeps): DeskPage {
  const files = loadOnce(readFiles);

  const respondTo = async (
    path: string,
    req: IncomingMessage,
    common: readonly string[],
  ): Promise<OwnResponse | undefined> => {
    const isAsset = path.startsWith(ASSETS);
    if (!isAsset && !isView(path)) return undefined;
    const refuse = (refusal: Problem): OwnResponse => renderProblem(refusal, common);
    if (req.method !== 'GET' && req.method !== 'HEAD')
      return refuse(problem('method_not_allowed', 'This path takes GET, HEAD.', { headers: { Allow: 'GET, HEAD' } }));
    let served: WebFiles;
    try {
      served = await files();
    } catch (error) {
      log.error('the desk cannot be served', { error });
      return refuse(problem('registry_unavailable', sentenceOf(error)));
    }
    const file = served.get(isAsset ? path : DESK);
    if (file === undefined) return refuse(problem('not_found', 'There is nothing at this path.'));
    return webFileResponse(file, req.headers, [...common, ...(isAsset ? FOR_EVER : ASK_AGAIN)]);
  };

  return {
    headers: (req) => {
      if (!pathOf(req.url ?? '').startsWith(DESK)) return undefined;
      const desk = settings();
      const origin = desk && originOf(req, desk);
      return deskHeaders(typeof origin === 'string' ? origin : undefined, desk?.publicUrl);
    },
    answer: async (req, res) => {
      const path = pathOf(req.url ?? '');
      const desk = settings();
      const send = (response: OwnResponse): number => {
        respond(res, response, req.method === 'HEAD');
        return response.status;
      };
      const isRead = req.method === 'GET' || req.method === 'HEAD';
      const isRoot = path === '/' && /\btext\/html\b/i.test(req.headers.accept ?? '');
      if (desk !== undefined && isRead && (path === '/desk' || isRoot))
        return send({ status: 303, headers: ['Location', DESK, ...deskHeaders(undefined, undefined)], body: '' });
      if (!path.startsWith(DESK)) return undefined;
      if (desk === undefined)
        return send(
          renderProblem(problem('not_found', 'There is nothing at this path.'), deskHeaders(undefined, undefined)),
        );
      const origin = originOf(req, desk);
      if (typeof origin !== 'string') return send(renderProblem(origin, deskHeaders(undefined, desk.publicUrl)));
      const response = await respondTo(path, req, deskHeaders(origin, desk.publicUrl));
      return response === undefined ? undefined : send(response);
    },
  };
}

/** Whether the page may answer `req`; nearly every request of a registry is none of these. */
export function isForDesk({ url = '' }: IncomingMessage): boolean {
  return url === '/' || url.startsWith('/desk') || !url.startsWith('/') || url.startsWith('/?');
}

/** Path of a request target as it stands, without authority and query. */
function pathOf(url: string): string {
  const origin = url.startsWith('/') ? url : url.replace(/^https?:\/\/[^/?#]*/i, '');
  return origin.split('?', 1)[0] ?? '';
}

/** The sentence of a defect that has one; a bundler's output is for the log. */
function sentenceOf(error: unknown): string {
  return error instanceof Error && /^The [^\n]{1,300}\.$/.test(error.message)
    ? error.message
    : 'The desk could not be built; the log of this registry says why.';
}
