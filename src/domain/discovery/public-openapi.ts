// Writes what is sold as the paths and components of an OpenAPI document, each operation with its price. A document that
// is too large loses the schemas of its responses first, then its request bodies, then operations from the last.
import { clip } from '../payment/offer.ts';
import type { Route } from '../routing/route.ts';
import { WITH_BODY } from './operation.ts';
import { componentOf, type Components } from './reference-copier.ts';
import { isPlain, memberOf } from './schema-references.ts';
import type { SoldOperation } from './sold-operations.ts';
import { firstPrice, type PublishedPrices } from './published-price.ts';

type PlainObject = Readonly<Record<string, unknown>>;

/** Paths and components as text. `without` says which parts there was no room for. */
export type WrittenPaths = {
  /** Members of a JSON object, without its braces. */
  readonly text: string;
  readonly bytes: number;
  readonly operations: readonly SoldOperation[];
  readonly without: { readonly responses: boolean; readonly bodies: boolean };
};

/** Price as x402 knows it. `dynamic` is told of a price that depends on the request. */
type Price =
  | { readonly mode: 'fixed'; readonly currency?: string; readonly amount: string }
  | { readonly mode: 'dynamic'; readonly currency?: string; readonly min: string; readonly max: string };

type Detail = { readonly responses: boolean; readonly bodies: boolean };

const DETAILS: readonly [Detail, ...Detail[]] = [
  { responses: true, bodies: true },
  { responses: false, bodies: true },
  { responses: false, bodies: false },
];
const SUMMARY_BYTES = 120;

/** Facts that all operations share. */
type Around = {
  readonly components: Components | undefined;
  readonly customerHeader: string;
  readonly prices: PublishedPrices;
};

/** Writes the paths in at most `mostBytes` bytes. */
export function writePaths(sold: readonly SoldOperation[], around: Around, mostBytes: number): WrittenPaths {
  const write = (detail: Detail): WrittenPaths => writeIn(sold, around, detail, mostBytes);
  const [whole, ...less] = DETAILS;
  let written = write(whole);
  for (const detail of less) if (written.operations.length < sold.length) written = write(detail);
  return written;
}

/** Writes the first operations, as many as there is room for. */
function writeIn(
  sold: readonly SoldOperation[],
  { components = {}, ...facts }: Around,
  detail: Detail,
  mostBytes: number,
): WrittenPaths {
  const paths = new Map<string, string[]>();
  const used = createUsed(components);
  const ids = new Set<unknown>();
  const operations: SoldOperation[] = [];
  let left = mostBytes - AROUND_BYTES;
  for (const each of sold) {
    const { operationId, ...operation } = writeOperation(each, components, facts, detail);
    // An id stands for one operation; under a second path it has none.
    const isNamed = operationId !== undefined && !ids.has(operationId);
    const written = isNamed ? { operationId, ...operation } : operation;
    const member = memberText(each.method.toLowerCase(), JSON.stringify(written));
    const methods = paths.get(each.path);
    const more = used.lookUp(written);
    left -= Buffer.byteLength(member) + 1 + more.bytes;
    if (methods === undefined) left -= Buffer.byteLength(memberText(each.path, '{}')) + 1;
    if (left < 0) break;
    ids.add(operationId);
    used.add(more);
    operations.push(each);
    if (methods === undefined) paths.set(each.path, [member]);
    else methods.push(member);
  }
  const told = [...paths].map(([path, methods]) => memberText(path, `{${methods.join(',')}}`));
  const text = `"paths":{${told.join(',')}}${used.text()}`;
  const without = { responses: !detail.responses, bodies: !detail.bodies };
  return { text, bytes: Buffer.byteLength(text), operations, without };
}

/** Size of the two members that hold everything, in bytes. */
const AROUND_BYTES = '"paths":{},"components":{}'.length;

function memberText(name: string, json: string): string {
  return `${JSON.stringify(name)}:${json}`;
}

function writeOperation(
  sold: SoldOperation,
  components: Components,
  { customerHeader, prices }: Omit<Around, 'components'>,
  detail: Detail,
): PlainObject {
  const { method, path, route, operation } = sold;
  const { summary, description, ...rest } = operation?.rest ?? {};
  const names = new Set([...path.matchAll(/\{([^{}]*)\}/g)].map(([, name = '']) => name));
  const requestBody = operation === undefined ? anyBody(method) : operation.requestBody;
  const responses = operation?.responses ?? {};
  const customer = operation === undefined && !route.allowAnonymous ? [customerOf(customerHeader)] : [];
  const parameters = [...writeParameters(names, operation), ...customer];
  const body = detail.bodies ? requestBody : undefined;
  return {
    ...(typeof summary === 'string' || typeof description !== 'string' ? { summary: summary ?? summaryOf(sold) } : {}),
    ...(typeof description === 'string' ? { description } : {}),
    ...rest,
    // An operation that takes nothing else says at least how it is paid: readers skip one without any input.
    parameters: parameters.length === 0 && body === undefined ? [PAYMENT] : parameters,
    ...(body === undefined ? {} : { requestBody: body }),
    responses: {
      ...(Object.keys(responses).length === 0 ? { '200': { description: 'What was paid for' } } : {}),
      ...(detail.responses ? responses : withoutSchemas(responses, components)),
      '402': PAYMENT_REQUIRED,
    },
    security: operation?.security ?? [],
    'x-payment-info': { price: priceOf(route, prices), protocols: [{ x402: {} }] },
  };
}

const PAYMENT = {
  name: 'PAYMENT-SIGNATURE',
  in: 'header',
  description: 'The payment, once a 402 has named its terms',
  schema: { type: 'string' },
};
const PAYMENT_REQUIRED = {
  description: 'Payment required',
  headers: { 'PAYMENT-REQUIRED': { description: 'Price and ways to pay (x402)', schema: { type: 'string' } } },
};

/** Summary of an operation that is sold, in few words. */
function summaryOf({ method, path, route }: SoldOperation): string {
  const words = wordsOf(route.name || route.description || '');
  return words === '' ? `${method} ${path}` : words;
}

/** The summary of an operation, as a list shows it. */
export function titleOf(sold: SoldOperation): string {
  const { summary, description } = sold.operation?.rest ?? {};
  const said = [summary, description].find((text) => typeof text === 'string' && text.trim() !== '');
  return typeof said === 'string' ? wordsOf(said) : summaryOf(sold);
}

function wordsOf(text: string): string {
  return clip(text.replace(/\s+/g, ' ').trim(), SUMMARY_BYTES);
}

function anyBody(method: string): unknown {
  return WITH_BODY.has(method) ? { content: { 'application/json': { schema: {} } } } : undefined;
}

/** Writes the parameters. Those of the path are the ones that it names. */
function writeParameters(names: ReadonlySet<string>, operation: SoldOperation['operation']): readonly unknown[] {
  const own = (operation?.parameters ?? []).filter((each) => each.in !== 'path' || names.has(each.name));
  const known = new Set(own.filter((each) => each.in === 'path').map(({ name }) => name));
  const missing = [...names]
    .filter((name) => !known.has(name))
    .map((name) => ({ name, in: 'path', required: true, schema: { type: 'string' } }));
  return [...own.map(({ value }) => value), ...missing];
}

function customerOf(name: string): object {
  return { name, in: 'header', required: true, description: 'Who asks', schema: { type: 'string' } };
}

function withoutSchemas(responses: PlainObject, components: Components): PlainObject {
  return Object.fromEntries(
    Object.entries(responses).map(([status, response]) => {
      const reference = memberOf(response, '$ref');
      const [section = '', name = ''] = (typeof reference === 'string' ? componentOf(reference) : undefined) ?? [];
      const meant = reference === undefined ? response : memberOf(memberOf(components, section), name);
      const description = memberOf(meant, 'description');
      return [status, { description: typeof description === 'string' ? description : '' }];
    }),
  );
}

/** Indexes read ISO 4217 alone; a coin of a currency is taken at par. */
function priceOf(route: Route, prices: PublishedPrices): Price {
  const { currency } = route;
  const iso = /^[A-Z]{3}$/.test(currency) ? currency : /^(?:USD|EUR|GBP)/.exec(currency)?.[0];
  const named = iso === undefined ? {} : { currency: iso };
  const price = firstPrice(route, prices);
  return 'amount' in price ? { mode: 'fixed', ...named, ...price } : { mode: 'dynamic', ...named, ...price };
}

/** Components that are not told yet. `bytes` is what they take, at most. */
type MoreComponents = {
  readonly found: readonly { readonly section: string; readonly name: string; readonly json: string }[];
  readonly bytes: number;
};

/** Tells those of `components` that the written text refers to, over any number of others. */
function createUsed(components: Components): {
  readonly lookUp: (operation: PlainObject) => MoreComponents;
  readonly add: (more: MoreComponents) => void;
  /** Text of a member to follow others; empty: there are none. */
  readonly text: () => string;
} {
  const used = new Map<string, Map<string, string>>();

  const lookUp = (operation: PlainObject): MoreComponents => {
    const found = new Map<string, MoreComponents['found'][number]>();
    const use = (section: string, name: string): void => {
      const component = memberOf(memberOf(components, section), name);
      const key = `${section}/${name}`;
      if (!isPlain(component) || found.has(key) || used.get(section)?.has(name) === true) return;
      found.set(key, { section, name, json: JSON.stringify(component) });
      walk(component);
    };
    const walk = (value: unknown): void => {
      if (Array.isArray(value)) return value.forEach(walk);
      if (!isPlain(value)) return;
      for (const [name, member] of Object.entries(value)) {
        if (name === '$ref' && typeof member === 'string') use(...(componentOf(member) ?? NOWHERE));
        else if (name === 'discriminator') useMapping(memberOf(member, 'mapping'));
        walk(member);
      }
    };
    const useMapping = (mapping: unknown): void => {
      for (const target of isPlain(mapping) ? Object.values(mapping) : [])
        if (typeof target === 'string') use(...(componentOf(target) ?? (['schemas', target] as const)));
    };
    walk(operation);
    const security = operation['security'];
    for (const requirement of Array.isArray(security) ? security : [])
      for (const name of isPlain(requirement) ? Object.keys(requirement) : []) use('securitySchemes', name);
    const bytes = [...found.values()].map(
      ({ section, name, json }) => Buffer.byteLength(memberText(section, memberText(name, json))) + 4,
    );
    return { found: [...found.values()], bytes: bytes.reduce((sum, each) => sum + each, 0) };
  };

  return {
    lookUp: Object.keys(components).length === 0 ? () => NO_MORE : lookUp,
    add: ({ found }) => {
      for (const { section, name, json } of found) {
        const known = used.get(section) ?? new Map<string, string>();
        used.set(section, known);
        known.set(name, memberText(name, json));
      }
    },
    text: () => {
      const sections = [...used].map(([section, of]) => memberText(section, `{${[...of.values()].join(',')}}`));
      return sections.length === 0 ? '' : `,"components":{${sections.join(',')}}`;
    },
  };
}

const NOWHERE = ['', ''] as const;
const NO_MORE: MoreComponents = { found: [], bytes: 0 };
