// Pages of a block explorer: where people look a transaction or an account up.

/** Address of the page; `explorer` is the explorer's own, whose query stays. */
export function explorerPage(explorer: string, what: 'tx' | 'address', id: string): string {
  const url = new URL(explorer);
  url.pathname = `${url.pathname.replace(/\/$/, '')}/${what}/${encodeURIComponent(id)}`;
  return url.href;
}
