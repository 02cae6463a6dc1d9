// Routes and their changes as the columns of a store and back, the same for every kind of store. A row that the schema
// does not allow throws here: no wrong price is handed on.
import type { AuditCause } from '../../domain/audit.ts';
import {
  blankOf,
  fromWire,
  ROUTE_ROWS,
  routeOf,
  routeWire,
  toWire,
  type Route,
  type RouteWire,
} from '../../domain/routing/route.ts';
import type { RouteField } from '../../domain/routing/route-fields.ts';
import { readDeclared, writeDeclared } from './declared-column.ts';
import type { ChangeKind, Head, NewRoute, RouteChange, StoredChange, StoredRoute, Writer } from './ports.ts';
import { integer, nullableText, text, type Row } from './rows.ts';

/** Columns in the order in which `routeValues` binds them. */
export const ROUTE_COLUMNS = [...ROUTE_ROWS.map(({ wire }) => wire), 'written_by', 'declared'];

export type RecordedChange = {
  readonly kind: ChangeKind;
  readonly route: StoredRoute;
  readonly at: string;
  readonly by: Writer;
  readonly before?: Route;
  readonly after?: Route;
  readonly cause?: AuditCause | undefined;
};

export function isOther(stored: StoredRoute, known: StoredRoute): boolean {
  return stored.writtenBy !== known.writtenBy || routeJson(stored) !== routeJson(known);
}

export function routeJson(route: Route | undefined): string | null {
  return route === undefined ? null : JSON.stringify(toWire(route));
}

export function routeValues(route: NewRoute): (string | number | null)[] {
  const columns = ROUTE_ROWS.map(({ name }) => route[name]);
  return [...columns, route.writtenBy, writeDeclared(route.declared)].map((value) =>
    typeof value === 'boolean' ? Number(value) : value,
  );
}

function asItIs(value: string): string {
  return value;
}

const BLANK = blankOf([...ROUTE_ROWS.map(({ name }) => name), 'seq', 'writtenBy', 'declared']);

/** Reads a route. `pool` gives one string for equal ones. */
export function readRoute(row: Row, pool: (text: string) => string = asItIs): StoredRoute {
  const route = routeOf((field) => {
    const value = readColumn(row, field);
    return field.interned && typeof value === 'string' ? pool(value) : value;
  }, BLANK);
  const writtenBy = writerOf(pool(text(row, 'written_by')));
  return Object.assign(route, { seq: integer(row, 'seq'), writtenBy, declared: readDeclared(row) });
}

function readColumn(row: Row, { wire, column }: RouteField): string | boolean | null {
  if (column === 'flag') return integer(row, wire) === 1;
  return column === 'text' ? text(row, wire) : nullableText(row, wire);
}

export function readHead(row: Row | undefined): Head {
  if (!row) throw new Error('the store has lost its meta row');
  return { revision: integer(row, 'revision'), stamp: text(row, 'stamp') };
}

export function readChange(row: Row): StoredChange {
  const kind = text(row, 'kind');
  if (kind !== 'created' && kind !== 'updated' && kind !== 'deleted')
    throw new Error(`the store holds a change of kind ${kind}`);
  const wire = readWire(nullableText(row, kind === 'deleted' ? 'before' : 'after'));
  if (wire === null) throw new Error('the store holds a change without its route');
  const writtenBy = writerOf(text(row, 'written_by'));
  const route = { ...fromWire(wire), seq: integer(row, 'seq'), writtenBy, declared: readDeclared(row) };
  return { revision: integer(row, 'revision'), stamp: text(row, 'stamp'), kind, route };
}

export function readHistory(row: Row): RouteChange {
  return {
    revision: integer(row, 'revision'),
    at: text(row, 'at'),
    by: writerOf(text(row, 'written_by')),
    before: readWire(nullableText(row, 'before')),
    after: readWire(nullableText(row, 'after')),
  };
}

function readWire(json: string | null): RouteWire | null {
  // What was written before there were plans names none.
  return json === null ? null : routeWire.parse({ plan_id: null, ...JSON.parse(json) });
}

function writerOf(written: string): Writer {
  if (written === 'config' || isNamed(written)) return written;
  throw new TypeError(`the store holds a route written by ${written}`);
}

function isNamed(written: string): written is Exclude<Writer, 'config'> {
  return written.startsWith('dashboard:') || written.startsWith('api_key:');
}
