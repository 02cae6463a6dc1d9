// What rows are called in every table, so that whoever reads the tables finds the row that whoever measured it wrote.

export const DIRECT = 'upstream direct';
export const NGINX = 'nginx';
export const HAPROXY = 'haproxy';
export const HTTP_PROXY_3 = 'http-proxy-3';
export const UNDICI = 'node:http + undici dispatch';
export const CONSTANT = 'node:http, constant';
export const X402_EXPRESS = '@x402/express, 10 routes';

/** Of routes. What is measured with other numbers of them is not what the table is about. */
export const FEW = 10;
export const MAIN = 10_000;
export const MANY = 100_000;

export const tollgateName = (routes: number): string => `Tollgate, ${routes} routes`;
/** The document of what is sold, and a 402 of the same process. */
export const documentName = (routes: number): string => `Tollgate, ${routes} routes, /openapi.json`;
export const besideDocumentName = (routes: number): string => `Tollgate, ${routes} routes, 402 beside /openapi.json`;
/** 402s of one process: of a route without a plan, and of one whose plan prices what is asked. */
export const unpricedName = (routes: number): string => `Tollgate, ${routes} routes, 402 without a plan`;
export const pricedName = (routes: number): string => `Tollgate, ${routes} routes, 402 priced by rules`;
/** Rows of one process: free GETs, and those of a pass by seconds whose token is known, or is verified each time. */
export const besidePassesName = (routes: number): string => `Tollgate, ${routes} routes, free beside passes`;
export const passName = (routes: number): string => `Tollgate, ${routes} routes, a pass by seconds`;
export const verifiedPassName = (routes: number): string => `Tollgate, ${routes} routes, every token verified`;
/** Rows of a decision listener, and the 402 that the proxy of the same process writes. */
export const allowName = (routes: number): string => `Tollgate, ${routes} routes, an allow`;
export const askedDemandName = (routes: number): string => `Tollgate, ${routes} routes, 402 to a question`;
export const besideQuestionsName = (routes: number): string => `Tollgate, ${routes} routes, 402`;
export const FORWARD_AUTH = 'Caddy, forward_auth to a constant';
export const changingName = (routes: number): string => `Tollgate, ${routes} routes, prices changing`;
export const swappedName = (routes: number): string => `Tollgate, ${routes} routes, the whole set swapped`;
export const PAID_GET = 'paid GET, settled before the response';
export const PAID_POST = 'paid POST, settled before forwarding';
/** Of the rows of the checkout at `index` in bench/paid.ts. */
export const suffixOf = (index: number): string => (index === 0 ? '' : ` #${index + 1}`);
