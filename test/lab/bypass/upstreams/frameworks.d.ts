// The little that the suite uses of frameworks that ship no types of their own.
declare module 'express-4' {
  import type { Express } from './express.ts';
  const express: Express;
  export default express;
}
declare module 'express-5' {
  import type { Express } from './express.ts';
  const express: Express;
  export default express;
}
declare module 'koa' {
  import type { RequestListener } from 'node:http';
  export default class Koa {
    use(middleware: unknown): this;
    callback(): RequestListener;
    on(event: 'error', listener: () => void): this;
  }
}
declare module 'polka' {
  import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http';
  type Handler = (req: IncomingMessage, res: ServerResponse) => void;
  type Polka = {
    get(pattern: string, handler: Handler): Polka;
    post(pattern: string, handler: Handler): Polka;
    handler: RequestListener;
  };
  export default function polka(): Polka;
}
