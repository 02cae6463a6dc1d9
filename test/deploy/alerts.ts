// The alerts that are shipped, and what their expressions name.
import { z } from 'zod';
import { readYaml } from './support.ts';

export const ALERTS = z
  .strictObject({
    groups: z.array(
      z.strictObject({
        name: z.string(),
        rules: z.array(
          z.strictObject({
            alert: z.string().regex(/^Tollgate[A-Za-z]+$/),
            expr: z.string(),
            for: z
              .string()
              .regex(/^\d+[md]$/)
              .optional(),
            labels: z.strictObject({ severity: z.enum(['page', 'ticket']) }),
            annotations: z.strictObject({ summary: z.string(), action: z.string() }),
          }),
        ),
      }),
    ),
  })
  .parse(readYaml('config/prometheus/alerts.yml')[0])
  .groups.flatMap((group) => group.rules);

export type Matcher = { readonly label: string; readonly operator: string; readonly value: string };
export type Selector = { readonly name: string; readonly matchers: readonly Matcher[] };

/** The series that `expr` names. */
export function selectorsOf(expr: string): readonly Selector[] {
  return [...expr.matchAll(/\b((?:tollgate|nodejs|process)_\w+|up)\b(?:\{([^}]*)\})?/g)].map(
    ([, name = '', matchers = '']) => ({
      name,
      matchers: [...matchers.matchAll(/(\w+)(=~|!~|!=|=)"([^"]*)"/g)].map(
        ([, label = '', operator = '', value = '']) => ({ label, operator, value }),
      ),
    }),
  );
}

/** The labels that `expr` sums up or joins by. */
export function keptLabelsOf(expr: string): readonly string[] {
  return [...expr.matchAll(/\b(?:by|on) \(([^)]*)\)/g)].flatMap(([, names]) => names?.match(/\w+/g) ?? []);
}
