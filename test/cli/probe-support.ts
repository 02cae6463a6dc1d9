// What the tests of the probe share: an upstream of some temperament, in this process, and the command run against it.
import { createServer, type IncomingMessage, type RequestListener, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { onTestFinished } from 'vitest';
import { z } from 'zod';
import { COMMANDS } from '../../src/cli/commands.ts';
import { runCommandLine } from '../../src/cli/dispatch.ts';
import { fakeIo } from './support.ts';

export type ProbedUpstream = {
  readonly url: string;
  /** `METHOD target` of everything that arrived, as it arrived. */
  readonly seen: string[];
  /** The most requests that were there at once. */
  readonly most: () => number;
};

export async function startProbed(handle: RequestListener): Promise<ProbedUpstream> {
  const seen: string[] = [];
  let now = 0;
  let most = 0;
  const server = createServer((req, res) => {
    seen.push(`${req.method} ${req.url}`);
    now++;
    most = Math.max(most, now);
    res.on('close', () => void now--);
    handle(req, res);
  });
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve);
  });
  onTestFinished(async () => {
    server.closeAllConnections();
    await new Promise((resolve) => {
      server.close(resolve);
    });
  });
  const { port } = server.address() as AddressInfo;
  return { url: `http://127.0.0.1:${port}`, seen, most: () => most };
}

export const PATH = '/v1/export';

/** The resource, and what is answered for everything else. */
export function serve(res: ServerResponse): void {
  res.setHeader('content-type', 'application/json');
  res.end('{"rows":[1,2,3]}');
}
export function notFound(req: IncomingMessage, res: ServerResponse): void {
  res.statusCode = 404;
  res.end(`Cannot ${req.method} ${req.url}`);
}

/** An upstream that reads a path as `read` does and serves what then is PATH. */
export function reading(read: (path: string) => string): RequestListener {
  return (req, res) => {
    const path = (req.url ?? '').split('?')[0] ?? '';
    if (read(path) === PATH) serve(res);
    else notFound(req, res);
  };
}

export async function runProbe(...argv: string[]): Promise<{ code: number; stdout: string; stderr: string }> {
  const io = fakeIo();
  const code = await runCommandLine(['probe', ...argv], COMMANDS, io);
  return { code, stdout: io.stdout(), stderr: io.stderr() };
}

const profile = z.object({ profile: z.string(), folds: z.array(z.string()), free: z.array(z.string()) });
const REPORT = z.object({
  told: z.boolean(),
  recommended: z.object({
    upstream_profile: z.string(),
    alike: z.array(z.string()),
    undeclared_methods: z.string(),
    encoded_slashes_keep_is_safe: z.boolean(),
    double_slashes_keep_is_safe: z.boolean(),
  }),
  asked: z.object({ profile: z.string(), safe: z.boolean() }).optional(),
  safe: z.array(profile),
  unproven: z.array(profile),
  unsafe: z.array(profile),
  needs: z.array(z.object({ rule: z.string(), because: z.array(z.string()) })),
  paths: z.array(
    z.object({
      path: z.string(),
      protected_as: z.string(),
      status: z.number().nullable(),
      unknown_status: z.number().nullable(),
      doubt: z.string().nullable(),
      canaries: z.array(
        z.object({ kind: z.string(), target: z.string(), deed: z.object({ kind: z.string() }), tollgate: z.string() }),
      ),
      methods: z.array(z.object({ method: z.string(), status: z.number().optional(), alike: z.boolean() })),
    }),
  ),
});
export type Report = z.infer<typeof REPORT>;

/** What `probe --json` says about PATH, or about the paths in `argv`. */
export async function probeJson(upstream: string, ...argv: string[]): Promise<{ code: number; report: Report }> {
  const paths = argv.includes('--path') ? [] : ['--path', PATH];
  const { code, stdout } = await runProbe('--upstream', upstream, '--json', ...paths, ...argv);
  return { code, report: REPORT.parse(JSON.parse(stdout)) };
}

export function neededBy({ needs }: Report): string[] {
  return needs.filter(({ because }) => because.length > 0).map(({ rule }) => rule);
}
export function namesOf(profiles: Report['safe']): string[] {
  return profiles.map(({ profile }) => profile);
}
/** Targets of the first path that reached it, or may have. */
export function reachedIn({ paths }: Report): string[] {
  const canaries = paths[0]?.canaries ?? [];
  return canaries.filter(({ deed }) => ['reached', 'unclear'].includes(deed.kind)).map(({ target }) => target);
}
/** No spelling got around these, whether or not a parameter was asked. */
export function heldIn({ safe, unproven }: Report): string[] {
  return namesOf([...safe, ...unproven]);
}
