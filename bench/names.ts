// What peers are called in every table, so that whoever reads the tables finds the row that whoever measured it wrote.

export const DIRECT = 'upstream direct';
export const NGINX = 'nginx';
export const HAPROXY = 'haproxy';
export const HTTP_PROXY_3 = 'http-proxy-3';
export const UNDICI = 'node:http + undici dispatch';
export const CONSTANT = 'node:http, constant';
export const X402_EXPRESS = '@x402/express, 10 routes';
