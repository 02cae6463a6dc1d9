// Faults to plant in the program, each as what it says in the source and what it says instead. A run of chaos that finds
// nothing wrong with one of them is worth nothing.
export type Change = { readonly file: string; readonly text: string; readonly by: string };

export const FAULTS: Readonly<Record<string, readonly Change[]>> = {
  // Found with `--webhooks`.
  'a state untold': [
    {
      file: 'registry/store/charge-values.ts',
      text: 'return before.state === after.state ? null',
      by: "return before.state === after.state || after.state === 'delivered' ? null",
    },
  ],
  'a guard removed': [
    {
      file: 'registry/store/postgres/migrations.ts',
      text: "readFileSync(new URL(file, import.meta.url), 'utf8')",
      by: "readFileSync(new URL(file, import.meta.url), 'utf8') + '; DROP INDEX IF EXISTS charges_payment; ALTER TABLE charges DROP CONSTRAINT IF EXISTS charges_id_key'",
    },
    {
      file: 'registry/store/postgres/charge-sql.ts',
      text: 'k.unique_key = v.unique_key',
      by: 'k.unique_key = v.unique_key AND false',
    },
    {
      file: 'registry/store/postgres/charge-sql.ts',
      text: 'WHERE k.id = v.id)',
      by: 'WHERE k.id = v.id AND false)',
    },
  ],
  'a lease ignored': [
    {
      file: 'domain/payment/claim-policy.ts',
      text: 'const free = charge.leaseUntil <= now;',
      by: 'const free = true;',
    },
    {
      file: 'domain/payment/transition.ts',
      text: "if (leaseUntil > now) return 'lease_running';",
      by: '',
    },
    {
      file: 'domain/payment/transition.ts',
      text: "if (charge.leaseUntil > now) return 'lease_running';",
      by: '',
    },
    {
      file: 'registry/store/postgres/charge-sql.ts',
      text: 'THEN c.lease_until ELSE greatest(c.lease_until, $4::int8) END <=',
      by: 'THEN 0 ELSE 0 * $4::int8 END <=',
    },
  ],
  'a version ignored': [
    {
      file: 'registry/store/postgres/charge-sql.ts',
      text: 'c.version = v.of_version\n',
      by: '(c.version = v.of_version OR true)\n',
    },
  ],
  // The next four are found with `--passes`.
  'a use forgotten': [
    {
      file: 'domain/selling/pass-book.ts',
      text: 'const next = { ...before, drawn: before.drawn + wanted, uses: before.uses + 1 };',
      by: 'const next = { ...before, drawn: before.drawn, uses: before.uses + 1 };',
    },
  ],
  'a dead use given back for ever': [
    {
      file: 'domain/selling/pass-book.ts',
      text: 'counter !== undefined && book[counter] >= GIVEN_BACK_AT_MOST',
      by: 'false',
    },
  ],
  'a dead use taken at once': [
    {
      file: 'domain/selling/pass-book.ts',
      text: 'counter !== undefined && book[counter] >= GIVEN_BACK_AT_MOST',
      by: 'counter !== undefined',
    },
  ],
  'a reservation without an end': [
    {
      file: 'domain/selling/pass-book.ts',
      text: "else if (isLost(draw, now)) endUnanswered(rows, book, draw, { because: 'lost', now });",
      by: '',
    },
  ],
  'a commit assumed': [
    {
      file: 'registry/store/postgres/charge-connections.ts',
      text: 'return unlessLate(pending, answers, messageOf(error));',
      by: 'for (const each of pending) answers.finish(each, undefined); return [];',
    },
  ],
};
