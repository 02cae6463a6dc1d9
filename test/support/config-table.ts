// The table of keys in config/README.md, made of the schema that judges them. `npm run map` writes it;
// test/config/table.test.ts holds the README against it.
import { readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { takesOf } from '../../src/config/fields.ts';
import { describedKeys, type DescribedKey } from '../../src/config/keys.ts';
import { createConfigSchema } from '../../src/config/schema.ts';
import { z } from 'zod';
import { listRows, type ListRow } from './config-lists.ts';

const README = path.resolve(import.meta.dirname, '../../config/README.md');
const BEGIN = '<!-- keys: npm run map -->\n';
const END = '<!-- /keys -->\n';
const IN_FORCE = { 'at once': '', restart: 'restart', clients: 'restart, towards clients' } as const;

export function readConfigReadme(): string {
  return readFileSync(README, 'utf8');
}

export function renderConfigReadme(): string {
  const text = readConfigReadme();
  const [before = '', rest = ''] = text.split(BEGIN);
  return `${before}${BEGIN}${table()}${END}${rest.split(END)[1] ?? ''}`;
}

function table(): string {
  const rows = describedKeys(createConfigSchema('')).filter(({ isLeaf }) => isLeaf);
  return `| key | default | takes | what it is | reload |\n|---|---|---|---|---|\n${rows.map((row) => rowOf(row) + listRowsOf(row.path)).join('')}`;
}

function listRowsOf(section: string): string {
  return section === 'receivers' || section === 'routes' ? listRows(section).map(listRowOf).join('') : '';
}

function listRowOf({ path: name, schema, takes, sentence, default: otherwise }: ListRow): string {
  return lineOf([`\`${name}\``, otherwise ?? defaultOf(schema), takes, sentence, '']);
}

function rowOf({ path: name, schema, sentence, inForce }: DescribedKey): string {
  return lineOf([`\`${name}\``, defaultOf(schema), takesOf(schema), sentence, IN_FORCE[inForce]]);
}

function lineOf(cells: readonly string[]): string {
  return `| ${cells.map((cell) => cell.replaceAll('|', '\\|')).join(' | ')} |\n`;
}

function defaultOf(schema: z.ZodType): string {
  if (schema instanceof z.ZodOptional) return '';
  if (!(schema instanceof z.ZodDefault || schema instanceof z.ZodPrefault)) return 'needed';
  const value: unknown = schema.def.defaultValue;
  if (value === null) return '';
  if (value === 0 && takesOf(schema).endsWith('or off')) return '`off`';
  return `\`${typeof value === 'string' ? value : JSON.stringify(value)}\``;
}

if (process.argv.includes('--write')) writeFileSync(README, renderConfigReadme());
