// The little that the suite uses of frameworks that ship no types of their own.
declare module 'express-4' {
  const express: import('./express.ts').Express;
  export default express;
}
declare module 'express-5' {
  const express: import('./express.ts').Express;
  export default express;
}
declare module 'koa' {
  export default class Koa {
    use(middleware: unknown): this;
    callback(): import('node:http').RequestListener;
    on(event: 'error', listener: () => void): this;
  }
}
declare module 'polka' {
  type Handler = (req: import('node:http').IncomingMessage, res: import('node:http').ServerResponse) => void;
  type Polka = {
    get(pattern: string, handler: Handler): Polka;
    post(pattern: string, handler: Handler): Polka;
    handler: import('node:http').RequestListener;
  };
  export default function polka(): Polka;
}
