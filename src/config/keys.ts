// Describes a section of the configuration: each key once, with its name in the program, its schema, a sentence, and
// whether a changed value waits for a restart. The type of the configuration, its messages, the table in config/README.md
// and the list of what a reload cannot change are made from these rows.
import { z } from 'zod';

/**
 * Time at which a key takes effect. `clients`: what faces clients keeps the value of the start, what faces the upstream
 * takes the new one.
 */
type EffectTime = 'at once' | 'restart' | 'clients';

export type Key<Name extends string = string, Schema extends z.ZodType = z.ZodType> = {
  /** Names in the program: camelCase, with the unit; empty for what is only judged. */
  readonly name: Name;
  readonly schema: Schema;
  readonly sentence: string;
  readonly inForce: EffectTime;
};
export type Keys = Readonly<Record<string, Key>>;

/** Output of a section with `keys`. */
type Output<K extends Keys> = {
  readonly [P in keyof K as K[P]['name'] extends '' ? never : K[P]['name']]: z.output<K[P]['schema']>;
};
type Shape<K extends Keys> = { [P in keyof K]: K[P]['schema'] };

const sections = new WeakMap<z.ZodType, Keys>();

export function key<const Name extends string, Schema extends z.ZodType>(
  name: Name,
  schema: Schema,
  sentence: string,
  inForce: EffectTime = 'at once',
): Key<Name, Schema> {
  return { name, schema, sentence, inForce };
}

/** A section of exactly these keys; becomes an object with the program's names. */
export function section<K extends Keys>(keys: K): z.ZodPipe<z.ZodObject<Shape<K>>, z.ZodTransform<Output<K>>> {
  const shape = Object.fromEntries(Object.entries(keys).map(([name, { schema }]) => [name, schema])) as Shape<K>;
  const object = z.strictObject(shape);
  sections.set(object, keys);
  return object.transform((values) => {
    const given: Readonly<Record<string, unknown>> = values;
    const entries = Object.entries(keys).map(([written, { name }]) => [name, given[written]]);
    return Object.fromEntries(entries.filter(([name]) => name !== '')) as Output<K>;
  });
}

/** The schema that judges a value as it is written: without defaults, and before what it becomes. */
export function writtenSchema(schema: unknown): unknown {
  if (schema instanceof z.ZodOptional || schema instanceof z.ZodPrefault || schema instanceof z.ZodDefault)
    return writtenSchema(schema.def.innerType);
  if (!(schema instanceof z.ZodPipe)) return schema;
  return writtenSchema(schema.def.out instanceof z.ZodTransform ? schema.def.in : schema.def.out);
}

/** The keys of a section, or of each section of a list; undefined for any other schema. */
export function keysOf(schema: unknown): Keys | undefined {
  const written = writtenSchema(schema);
  if (written instanceof z.ZodArray) return keysOf(written.element);
  return written instanceof z.ZodObject ? sections.get(written) : undefined;
}

export type DescribedKey = Key & {
  /** The key as it is written: `proxy.limits.target`. */
  readonly path: string;
  /** The names in the program that lead to its value. */
  readonly names: readonly string[];
  /** No section of its own. */
  readonly isLeaf: boolean;
};

/** Every key below `schema`, sections before what they hold. A key waits for a restart if its section does. */
export function describedKeys(schema: unknown, above?: DescribedKey): readonly DescribedKey[] {
  return Object.entries(keysOf(schema) ?? {}).flatMap(([written, row]) => {
    const path = above === undefined ? written : `${above.path}.${written}`;
    const inForce = above === undefined || above.inForce === 'at once' ? row.inForce : above.inForce;
    const described = { ...row, path, inForce, names: [...(above?.names ?? []), row.name] };
    const inner = describedKeys(row.schema, { ...described, isLeaf: false });
    return [{ ...described, isLeaf: inner.length === 0 }, ...inner];
  });
}
