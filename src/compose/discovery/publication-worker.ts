// A thread that makes the publication of one set of routes. The routes come in slices, and the requests that it asks about
// go in slices, so that a large set stalls nobody who serves requests. It keeps what a document has room for, says what it
// made and ends.
import { setPriority } from 'node:os';
import { isMainThread, parentPort, workerData } from 'node:worker_threads';
import type { OwnerDocument } from '../../domain/discovery/owner-document.ts';
import { draftPublication, type PublicationDraft } from '../../domain/discovery/publication.ts';
import type { SampleRequest } from '../../domain/discovery/sold-operations.ts';
import { parsePattern } from '../../domain/routing/pattern.ts';
import type { Route } from '../../domain/routing/route.ts';
import { readRoutes, type PublicationReply, type PublicationTask, type PublicationJob } from './publication-wire.ts';

/** Priority behind whatever serves requests. */
const NICE = 10;
/** Questions that are answered at a time: about a millisecond. */
const SLICE = 128;

// A thread has a priority of its own on Linux; elsewhere it would be that of the process.
if (!isMainThread && process.platform === 'linux') setPriority(NICE);

let draft: PublicationDraft | undefined;
let questions: readonly SampleRequest[] = [];
const winners: (Route | undefined)[] = [];

const say = (message: PublicationReply): void => parentPort?.postMessage(message, []);

function begin(): PublicationDraft {
  const { settings, exclude, owner } = workerData as PublicationTask;
  const patterns = exclude.flatMap((text) => {
    const parsed = parsePattern(text);
    return parsed.ok ? [parsed.pattern] : [];
  });
  const document = owner === undefined ? undefined : (JSON.parse(owner) as OwnerDocument);
  return draftPublication({ ...settings, exclude: patterns }, document);
}

/** Asks once more than there are questions, so that none asks too. */
function ask(): void {
  say({ kind: 'questions', questions: questions.slice(winners.length, winners.length + SLICE) });
}

parentPort?.on('message', (message: PublicationJob) => {
  draft ??= begin();
  if (message.kind === 'routes') {
    for (const route of readRoutes(message.text)) draft.add(route);
    if (!message.isLast) return;
    questions = draft.questions().map(({ method, path }) => ({ method, path }));
    return ask();
  }
  winners.push(...message.winners);
  if (winners.length < questions.length) return ask();
  say({ kind: 'made', made: draft.finish(winners, message.taken) });
  parentPort?.close();
});
