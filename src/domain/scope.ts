// The scopes of an API key: `sdk` registers and reads routes, `ledger` claims and changes charges.

export const SCOPES = ['sdk', 'ledger'] as const;
export type Scope = (typeof SCOPES)[number];
