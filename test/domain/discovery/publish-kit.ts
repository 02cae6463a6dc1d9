// What would be published of an OpenAPI document as text and of rules, as the program makes it.
import {
  draftPublication,
  publish,
  renderPublication,
  type Publication,
  type PublicationReport,
  type PublicationSettings,
} from '../../../src/domain/discovery/publication.ts';
import type { OpenApi } from '../../../src/domain/discovery/openapi.ts';
import type { OwnerDocument } from '../../../src/domain/discovery/owner-document.ts';
import { profileFolding } from '../../../src/domain/routing/profile.ts';
import type { Route } from '../../../src/domain/routing/route.ts';
import { compileSnapshot } from '../../../src/domain/routing/snapshot.ts';
import { route } from '../../cases/routes.ts';
import { descriptionOf, patternOf } from './kit.ts';

type Operation = {
  readonly 'x-payment-info': { readonly price: { readonly amount: string; readonly currency?: string } };
  readonly [member: string]: unknown;
};

export type PublicDocument = {
  readonly openapi: string;
  readonly info: object;
  readonly servers: unknown;
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>;
  readonly components?: Readonly<Record<string, Readonly<Record<string, unknown>>>>;
};

export type Told = {
  readonly publication: Publication;
  readonly report: PublicationReport;
  /** `/openapi.json`. */
  readonly text: string;
  readonly document: PublicDocument;
  readonly llms: string;
  /** What was read of the owner's document. */
  readonly api: OpenApi;
};

const PATHS = { encodedSlashes: 'refuse', doubleSlashes: 'merge', folding: profileFolding('unknown') } as const;
const NO_DOCUMENT = 'openapi: 3.1.0\n';

/** `rules`: routes, or METHOD PATTERN AMOUNT, then maybe a currency, `paused`, or `named` if nobody may ask without a customer id. */
export function publishText(
  text: string | undefined,
  rules: readonly (string | Route)[],
  exclude: readonly string[] = [],
  isPayable: (route: Route) => boolean = () => true,
  more: Partial<PublicationSettings> = {},
): Told {
  const api = descriptionOf(text ?? NO_DOCUMENT);
  const owner = text === undefined ? undefined : (JSON.parse(api.owner) as OwnerDocument);
  const settings: PublicationSettings = {
    title: undefined,
    contact: undefined,
    docsUrl: undefined,
    llms: undefined,
    exclude: exclude.map(patternOf),
    customerHeader: 'X-Customer-Id',
    ways: new Map([['default', ['base-sepolia USDC']]]),
    ...more,
  };
  const routes = rules.map((rule) => (typeof rule === 'string' ? ruled(rule) : rule));
  const { resolve } = compileSnapshot({ registryId: '', revision: 0, routes }, PATHS);
  const { publication, report } = publish(draftPublication(settings, owner), routes, resolve, isPayable);
  const { openapi, llms } = renderPublication(publication, 'https://api.example.com');
  return { publication, report, text: openapi, document: JSON.parse(openapi) as PublicDocument, llms, api };
}

function ruled(rule: string): Route {
  const [method = '', pattern = '', amount = '', ...marks] = rule.split(' ');
  const currency = marks.find((mark) => /^[A-Z]/.test(mark)) ?? 'USD';
  const status = marks.includes('paused') ? 'paused' : 'active';
  return { ...route(`${method} ${pattern} ${amount}`), currency, status, allowAnonymous: !marks.includes('named') };
}
