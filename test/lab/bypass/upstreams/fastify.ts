// Fastify, as it comes and with every option of its router that makes it more forgiving.
import fastify, { type FastifyServerOptions } from 'fastify';
import { createHits, listening, type UpstreamSpec } from '../upstream.ts';

/** An option of the router that its types do not know. */
const SEMICOLON: object = { useSemicolonDelimiter: true };

function spec(name: string, options: FastifyServerOptions, profile?: 'fastify'): UpstreamSpec {
  return {
    name,
    ...(profile === undefined ? {} : { profile }),
    start: async () => {
      const hits = createHits();
      const app = fastify({ logger: false, ...options });
      const paid = async (): Promise<string> => {
        hits.executions++;
        return 'paid for';
      };
      const free = async (): Promise<string> => 'free';
      app.get('/v1/reports/open', free);
      app.get('/v1/files/public', free);
      app.get('/v1/export', paid);
      app.get('/v1/reports/:id', paid);
      app.get('/v1/files/*', paid);
      app.post('/v1/teams/:team/jobs/:job', paid);
      app.get('/v1/Kiss/Data', paid);
      app.get('/v1/my report', paid);
      app.all('/free/*', free);
      app.addContentTypeParser('*', (_request, payload, done) => {
        payload.resume();
        done(null, undefined);
      });
      await app.listen({ port: 0, host: '127.0.0.1' });
      return listening(hits, app.server, () => app.close());
    },
  };
}

export const FASTIFY: readonly UpstreamSpec[] = [
  spec('fastify', {}, 'fastify'),
  spec('fastify, ignoreDuplicateSlashes', { routerOptions: { ignoreDuplicateSlashes: true } }, 'fastify'),
  spec('fastify, ignoreTrailingSlash', { routerOptions: { ignoreTrailingSlash: true } }, 'fastify'),
  spec('fastify, caseSensitive: false', { routerOptions: { caseSensitive: false } }),
  spec('fastify, useSemicolonDelimiter', { routerOptions: SEMICOLON }),
  spec('fastify, everything loose', {
    routerOptions: {
      ...SEMICOLON,
      ignoreDuplicateSlashes: true,
      ignoreTrailingSlash: true,
      caseSensitive: false,
      allowUnsafeRegex: true,
      maxParamLength: 1000,
    },
  }),
];
