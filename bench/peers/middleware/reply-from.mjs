// fastify with @fastify/reply-from, whose client is undici. `node reply-from.mjs UPSTREAM_PORT`.
import Fastify from 'fastify';
import replyFrom from '@fastify/reply-from';
import { report } from './announce.mjs';

const app = Fastify({ logger: false });
await app.register(replyFrom, { base: `http://127.0.0.1:${process.argv[2]}` });
// Bodies are handed on, not parsed.
app.removeAllContentTypeParsers();
app.addContentTypeParser('*', (_request, payload, done) => done(null, payload));
app.all('/*', (request, reply) => reply.from(request.raw.url));
await app.listen({ port: 0, host: '127.0.0.1' });
report(app.server.address().port);
process.on('SIGTERM', () => process.exit(0));
