// A thread that makes the publication of one set of routes. The routes come in slices, so that a large set stalls nobody
// who serves requests. It says what it made and ends.
import { setPriority } from 'node:os';
import { isMainThread, parentPort, workerData } from 'node:worker_threads';
import type { OwnerDocument } from '../domain/discovery/owner-document.ts';
import { publish } from '../domain/discovery/publication.ts';
import { parsePattern } from '../domain/pattern.ts';
import type { Route } from '../domain/route.ts';
import type { MadePublication, PublicationTask, RoutesSlice } from './publication.ts';

/** Behind whatever serves requests. */
const NICE = 10;

// On Linux a thread has a priority of its own; elsewhere it would be that of the process.
if (!isMainThread && process.platform === 'linux') setPriority(NICE);

const routes: Route[] = [];
const unpayable = new Set<Route>();

parentPort?.on('message', (slice: RoutesSlice) => {
  routes.push(...slice.routes);
  for (const index of slice.unpayable) {
    const route = slice.routes[index];
    if (route !== undefined) unpayable.add(route);
  }
  if (!slice.isLast) return;
  const { settings, exclude, owner } = workerData as PublicationTask;
  const patterns = exclude.flatMap((text) => {
    const parsed = parsePattern(text);
    return parsed.ok ? [parsed.pattern] : [];
  });
  const document = owner === undefined ? undefined : (JSON.parse(owner) as OwnerDocument);
  const made = publish({ ...settings, exclude: patterns }, document, routes, (route) => !unpayable.has(route));
  parentPort?.postMessage(made satisfies MadePublication, []);
  parentPort?.close();
});
