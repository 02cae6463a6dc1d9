// What an API key may do: `sdk` registers and reads routes, `ledger` claims and changes charges.

export const SCOPES = ['sdk', 'ledger'] as const;
export type Scope = (typeof SCOPES)[number];
