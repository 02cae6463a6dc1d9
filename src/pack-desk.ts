// The desk's files as they are served: raw, and compressed as well as can be, once and not in a request. `node
// src/pack-desk.ts` prints them as JSON, for a run from the sources; bundle.ts writes them into the package.
import { createHash } from 'node:crypto';
import { brotliCompressSync, constants, gzipSync } from 'node:zlib';
import { bundleDesk } from './bundle-desk.ts';
import { writeWebFiles, type WebFile } from './host/web-files.ts';

const COMPRESSIBLE = /^(?:text\/|application\/json|image\/svg)/;
const BEST = { params: { [constants.BROTLI_PARAM_QUALITY]: constants.BROTLI_MAX_QUALITY } };

export async function packDesk(): Promise<readonly WebFile[]> {
  const files = await bundleDesk();
  return files.map(({ path, type, base64 }) => {
    const raw = Buffer.from(base64, 'base64');
    const etag = `"${createHash('sha256').update(raw).digest('base64url').slice(0, 16)}"`;
    const isSmaller = COMPRESSIBLE.test(type);
    return {
      ...{ path: `/desk/${path}`, type, etag, raw },
      br: isSmaller ? brotliCompressSync(raw, BEST) : undefined,
      gz: isSmaller ? gzipSync(raw, { level: 9 }) : undefined,
    };
  });
}

if (process.argv[1] === import.meta.filename) process.stdout.write(writeWebFiles(await packDesk()));
