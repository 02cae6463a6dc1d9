// What must hold of passes whatever happens. Some of it is looked at when a change takes effect or an answer leaves, the rest when
// all has come to rest. It goes by the books and by what clients and upstream saw, never by what the code says of itself.
import {
  ASKS_OF_A_KEY,
  GIVEN_BACK_AT_MOST,
  standingOfBook,
  type DrawChange,
  type DrawResult,
  type PassBook,
  type PassDraw,
} from '../../../../src/domain/selling/pass-book.ts';
import { firstUseOf } from '../../../../src/domain/selling/pass-opening.ts';
import type { MemoryLedger } from '../../../support/memory-ledger.ts';
import type { Scheduler } from '../scheduler.ts';

/** One request that draws, as the rules see it. */
export type DrawingRequest = {
  owner: string | undefined;
  useId: string | undefined;
  /** The ledger told it that it has the use. */
  isGranted: boolean;
  /** The ledger told it a reason why not. */
  isRefused: boolean;
  /** Its word that it gives the use back took effect. */
  hasGivenBack: boolean;
};

export type DrawRules = {
  readonly violations: readonly string[];
  readonly violated: (what: string) => void;
  readonly begin: () => DrawingRequest;
  /** Puts a request and the change that it makes together. */
  readonly owned: (request: DrawingRequest, change: DrawChange) => void;
  /** A change took effect; `before`: the uses as they were, by id. */
  readonly changed: (change: DrawChange, result: DrawResult, before: ReadonlyMap<string, PassDraw>) => void;
  /** The ledger's answer reached its process. */
  readonly heard: (change: DrawChange, result: DrawResult) => void;
  readonly asked: (request: DrawingRequest, useId: string) => void;
  readonly delivered: (useId: string) => void;
  /** A 402 leaves. */
  readonly demanded: (request: DrawingRequest) => void;
  /** Nobody heard the answer of a use, and nobody is to blame: its client left, its process died, its upstream broke off. */
  readonly excused: (useId: string) => void;
  /** A process died: what its requests had in hand is nobody's. */
  readonly crashed: (run: string) => void;
  readonly refunded: (passId: string) => void;
  readonly atRest: (calm: boolean) => void;
};

function isDrawn({ state }: PassDraw): boolean {
  return state === 'taken' || state === 'forfeited';
}

export function createDrawRules(scheduler: Scheduler, { passes }: MemoryLedger): DrawRules {
  const violations: string[] = [];
  const owners = new Map<string, DrawingRequest>();
  const asks = new Map<string, number>();
  const delivered = new Set<string>();
  const excuses = new Set<string>();
  const crashed = new Set<string>();
  const violated = (what: string): void => {
    scheduler.say(`!!! ${what}`);
    violations.push(what);
  };
  const drawOf = (useId: string): PassDraw | undefined => passes.draws().find(({ id }) => id === useId);
  const isFirst = (useId: string): boolean => passes.books().some(({ id }) => firstUseOf(id) === useId);
  const total = (draws: readonly PassDraw[]): bigint => draws.reduce((sum, { amount }) => sum + amount, 0n);

  const checkBook = (book: PassBook): void => {
    const { id, sold, drawn, reserved, lost, left: gone } = book;
    const { left, lapsed } = standingOfBook(book, scheduler.now());
    if (drawn + left + reserved + lapsed !== sold) violated(`the sum of ${id} does not hold`);
    if ([drawn, left, reserved, lapsed].some((part) => part < 0n)) violated(`more was drawn on ${id} than was bought`);
    const draws = passes.draws().filter(({ passId }) => passId === id);
    if (total(draws.filter(({ state }) => state === 'reserved')) !== reserved)
      violated(`what is reserved of ${id} is not what its uses hold`);
    // A request that settles when the upstream has answered has its use without a row of its own.
    const rows = total(draws.filter(isDrawn));
    const hasFirstRow = draws.some((draw) => draw.id === firstUseOf(id));
    if (drawn - rows < 0n || (hasFirstRow && drawn !== rows))
      violated(`what is drawn of ${id} is not what its uses took`);
    if (Math.max(lost, gone) > GIVEN_BACK_AT_MOST) violated(`${id} gave more back than it may: ${lost} and ${gone}`);
  };
  const checkKey = ({ passId, key }: PassDraw): void => {
    const same = passes.draws().filter((draw) => draw.passId === passId && draw.key?.sha256 === key?.sha256);
    if (key !== null && same.length > 1) violated(`a key of ${passId} has ${same.length} uses`);
  };

  return {
    violations,
    violated,
    begin: () => ({ owner: undefined, useId: undefined, isGranted: false, isRefused: false, hasGivenBack: false }),
    owned: (request, { owner }) => {
      request.owner = owner;
      owners.set(owner, request);
    },
    changed: (change, result, all) => {
      const before = 'useId' in result ? all.get(result.useId) : undefined;
      const request = owners.get(change.owner);
      const now = scheduler.now();
      const after = 'useId' in result ? drawOf(result.useId) : undefined;
      const book = passes.books().find(({ id }) => id === change.passId);
      const wasMade = before?.state === 'reserved' && before.owner === change.owner;
      const isMade = after?.state === 'reserved' && after.owner === change.owner && !wasMade;
      if (change.kind === 'reserve' && isMade && book !== undefined) {
        if (request?.hasGivenBack === true) violated(`${after.id} is reserved for a request that gave it back`);
        if (book.revokedAt !== null || now >= book.endsAt) violated(`${book.id} is drawn on after its end`);
        checkKey(after);
      }
      if (
        change.kind === 'take' &&
        after?.state === 'taken' &&
        before?.state !== 'taken' &&
        request?.hasGivenBack === true
      )
        violated(`${after.id} is taken for a request that gave it back`);
      // Its next request with the key has it from here on, and may send it again.
      if (result.kind === 'repeated' && before?.owner !== change.owner) excuses.add(result.useId);
      if (change.kind === 'give_back' && request !== undefined) request.hasGivenBack = true;
      const { left } = book === undefined ? { left: 0n } : standingOfBook(book, now);
      if (result.kind === 'used_up' && change.kind === 'reserve' && left >= change.amount)
        violated(`${change.passId} is called used up, and holds ${left}`);
      if (book !== undefined) checkBook(book);
    },
    heard: (change, result) => {
      const request = owners.get(change.owner);
      if (request === undefined || change.kind !== 'reserve') return;
      if ('useId' in result) [request.isGranted, request.useId] = [true, result.useId];
      else request.isRefused = true;
    },
    asked: (request, useId) => {
      asks.set(useId, (asks.get(useId) ?? 0) + 1);
      if (!isFirst(useId) && (!request.isGranted || drawOf(useId) === undefined))
        violated(`the upstream was asked for ${useId}, which the ledger did not give`);
      const most = drawOf(useId)?.key === null || isFirst(useId) ? 1 : ASKS_OF_A_KEY;
      if ((asks.get(useId) ?? 0) > most) violated(`the upstream was asked ${asks.get(useId)} times for ${useId}`);
    },
    delivered: (useId) => {
      delivered.add(useId);
      // The use of the request that buys is told to the ledger until it hears: its money is taken, whatever becomes of it.
      if (!isFirst(useId) && drawOf(useId)?.state !== 'taken')
        violated(`${useId} is delivered and ${drawOf(useId)?.state ?? 'unknown to the ledger'}`);
    },
    demanded: ({ isRefused }) => {
      if (!isRefused) violated('a 402 leaves though nobody knows what is left');
    },
    excused: (useId) => void excuses.add(useId),
    crashed: (run) => void crashed.add(run),
    refunded: (passId) => {
      if (passes.books().find(({ id }) => id === passId)?.revokedAt === null)
        violated(`${passId} was refunded and may be drawn on`);
    },
    atRest: (calm) => {
      for (const book of passes.books()) {
        checkBook(book);
        if (book.reserved !== 0n) violated(`a reservation of ${book.id} never ends`);
        if (calm && book.lost > 0) violated(`a use of ${book.id} was lost on a calm day`);
      }
      for (const draw of passes.draws()) {
        if (isFirst(draw.id)) continue;
        if (delivered.has(draw.id) && !isDrawn(draw)) violated(`${draw.id} was delivered and is ${draw.state}`);
        const isExcused = excuses.has(draw.id) || crashed.has(draw.owner.split('/')[0] ?? '');
        if (isDrawn(draw) && !delivered.has(draw.id) && !isExcused)
          violated(`${draw.id} is taken and nobody had its answer`);
      }
    },
  };
}
