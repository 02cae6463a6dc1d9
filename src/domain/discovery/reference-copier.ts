// Copies parts of an OpenAPI document so that they stand by themselves: a reference to a component stays one, and that
// component comes along; any other is written out, or cut where it leads out of the document or back to itself. Bounded:
// whatever doubles with each step is given up with the operation that it belongs to, and no other.
import { isPlain, memberOf, pointed } from './schema-references.ts';

type PlainObject = Readonly<Record<string, unknown>>;

/** Components by section and name. */
export type Components = Readonly<Record<string, PlainObject>>;

export type Copier = {
  /** A copy whose references lead to components that are there. */
  readonly copy: (value: unknown) => unknown;
  /** Finds `node`, or what it refers to. */
  readonly follow: (node: unknown) => unknown;
  /** Keeps a component; false: there is none. */
  readonly use: (section: string, name: string) => boolean;
  /** Runs `make`; undefined if there was no room for what it copies, and then none of it is kept. */
  readonly attempt: <T>(make: () => T) => T | undefined;
  readonly components: () => Components;
};

/** Letters of all that is kept; of one operation or component; and of what is copied and then given up too. */
const MOST_LETTERS = 4 * 1024 * 1024;
const MOST_OF_ONE = 512 * 1024;
const MOST_COPIED = 8 * 1024 * 1024;
/** References to references. */
const MOST_STEPS = 32;
/** Sections that an operation may refer to. */
const SECTIONS = new Set('schemas responses parameters examples requestBodies headers securitySchemes'.split(' '));

class NoRoomError extends Error {}

/** The room that is left. */
type Room = {
  /** Throws if there is none. */
  readonly take: (letters: number) => void;
  /** `work` has the room of an operation or component to itself. */
  readonly alone: <T>(work: () => T) => T;
  /** Runs `work`; undefined if there was too little room, which is as before then. */
  readonly attempt: <T>(work: () => T) => { readonly value: T } | undefined;
};

function createRoom(): Room {
  let left = MOST_LETTERS;
  let leftOfOne = MOST_OF_ONE;
  let worked = 0;
  const alone: Room['alone'] = (work) => {
    const outer = leftOfOne;
    leftOfOne = MOST_OF_ONE;
    try {
      return work();
    } finally {
      leftOfOne = outer;
    }
  };
  return {
    alone,
    take: (letters) => {
      left -= letters;
      leftOfOne -= letters;
      worked += letters;
      if (left < 0 || leftOfOne < 0 || worked > MOST_COPIED) throw new NoRoomError();
    },
    attempt: (work) => {
      const before = left;
      try {
        return { value: alone(work) };
      } catch (error) {
        if (!(error instanceof NoRoomError)) throw error;
        left = before;
        return undefined;
      }
    },
  };
}

export function createCopier(document: unknown): Copier {
  const room = createRoom();
  const kept = new Map<string, Map<string, PlainObject>>();
  /** Places outside the components that are being written out: one that holds itself is cut. */
  const open = new Set<string>();
  /** Components that the attempt under way has added. */
  let added: (readonly [section: string, name: string])[] = [];

  const use: Copier['use'] = (section, name) => {
    if (!SECTIONS.has(section)) return false;
    const component = memberOf(memberOf(memberOf(document, 'components'), section), name);
    if (!isPlain(component)) return false;
    const known = kept.get(section) ?? new Map<string, PlainObject>();
    if (known.has(name)) return true;
    kept.set(section, known);
    // The component is known before it is read: it may refer to itself.
    known.set(name, {});
    added.push([section, name]);
    const own = room.alone(() => copy(section === 'responses' ? withoutLinks(component) : component));
    if (isPlain(own)) known.set(name, own);
    return true;
  };

  const refer = (reference: string, node: PlainObject): unknown => {
    const beside = copyMembers(node, (name) => name !== '$ref');
    const component = componentOf(reference);
    if (component !== undefined && pointed(document, reference.slice(1)) !== undefined) {
      const [section, name] = component;
      if (use(section, name)) return { $ref: reference, ...beside };
    }
    const meant = reference.startsWith('#') ? pointed(document, reference.slice(1)) : undefined;
    if (meant === undefined || component !== undefined || open.has(reference)) return beside;
    open.add(reference);
    try {
      const copied = copy(meant);
      return isPlain(copied) ? { ...copied, ...beside } : copied;
    } finally {
      open.delete(reference);
    }
  };

  const copyMembers = (value: PlainObject, wanted: (name: string) => boolean): PlainObject =>
    entriesOf(
      value,
      (name) => {
        if (!wanted(name)) return false;
        room.take(name.length + 1);
        return true;
      },
      copy,
    );

  const copy = (value: unknown): unknown => {
    room.take(typeof value === 'string' ? value.length + 1 : 1);
    if (Array.isArray(value)) return value.map(copy);
    if (!isPlain(value)) return value;
    const reference = value['$ref'];
    if (typeof reference === 'string') return refer(reference, value);
    const copied = copyMembers(value, (name) => name !== 'discriminator');
    if (!Object.hasOwn(value, 'discriminator')) return copied;
    return { ...copied, discriminator: discriminate(value['discriminator']) };
  };

  /** A discriminator names schemas without `$ref`. */
  const discriminate = (value: unknown): unknown => {
    const mapping = memberOf(value, 'mapping');
    if (!isPlain(value) || !isPlain(mapping)) return copy(value);
    const meant = entriesOf(
      mapping,
      (name) => {
        const target = mapping[name];
        if (typeof target !== 'string') return false;
        const component = componentOf(target) ?? (['schemas', target] as const);
        return use(...component);
      },
      copy,
    );
    return { ...copyMembers(value, (name) => name !== 'mapping'), mapping: meant };
  };

  return {
    copy,
    use,
    follow: (node) => {
      let at = node;
      for (let step = 0; step < MOST_STEPS; step++) {
        const reference = memberOf(at, '$ref');
        if (typeof reference !== 'string') return at;
        at = reference.startsWith('#') ? pointed(document, reference.slice(1)) : undefined;
      }
      return undefined;
    },
    attempt: (make) => {
      added = [];
      const made = room.attempt(make);
      if (made !== undefined) return made.value;
      open.clear();
      for (const [section, name] of added) kept.get(section)?.delete(name);
      return undefined;
    },
    components: () => Object.fromEntries([...kept].map(([section, of]) => [section, Object.fromEntries(of)])),
  };
}

/** `value` with those members that are wanted, each as `copy` gives it. */
export function entriesOf(value: PlainObject, wanted: (name: string) => boolean, copy: Copier['copy']): PlainObject {
  return Object.fromEntries(
    Object.entries(value).flatMap(([name, member]) => (wanted(name) ? [[name, copy(member)]] : [])),
  );
}

/** Links name other operations. */
export function withoutLinks(response: PlainObject): PlainObject {
  return Object.fromEntries(Object.entries(response).filter(([name]) => name !== 'links'));
}

/** Section and name of the component that a reference leads to, or into. */
export function componentOf(reference: string): readonly [section: string, name: string] | undefined {
  const [, section, written] = /^#\/components\/([^/]+)\/([^/]+)(?:\/|$)/.exec(reference) ?? [];
  if (section === undefined || written === undefined) return undefined;
  try {
    return [section, decodeURIComponent(written).replaceAll('~1', '/').replaceAll('~0', '~')];
  } catch {
    return undefined;
  }
}
