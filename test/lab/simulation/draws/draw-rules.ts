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
import { drawnBy, firstUseOf } from '../../../../src/domain/selling/pass-opening.ts';
import { chargeIdOfPass, passIdOf, readPassInSale } from '../../../../src/domain/selling/pass.ts';
import type { MemoryLedger } from '../../../support/memory-ledger.ts';
import type { Scheduler } from '../scheduler.ts';

/** One request that draws, as the rules see it. */
export type DrawingRequest = {
  /** The most that it takes, in the unit of the books. */
  readonly price: bigint;
  /** What its response costs; undefined: that was not said yet, or it costs nothing. */
  takes: bigint | undefined;
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
  readonly begin: (price: bigint) => DrawingRequest;
  /** Puts a request and the name together by which it changes the books. */
  readonly owned: (request: DrawingRequest, owner: string) => void;
  /** A change took effect; `before`: the uses as they were, by id. */
  readonly changed: (change: DrawChange, result: DrawResult, before: ReadonlyMap<string, PassDraw>) => void;
  /** The ledger's answer reached its process. */
  readonly heard: (change: DrawChange, result: DrawResult) => void;
  readonly asked: (request: DrawingRequest, useId: string) => void;
  /** A response was handed over whole. `isTakenAfterwards`: what it costs was said by its end. */
  readonly delivered: (request: DrawingRequest, useId: string, isTakenAfterwards: boolean) => void;
  /** A 402 leaves. */
  readonly demanded: (request: DrawingRequest) => void;
  /** Nobody heard the answer of a use, and nobody is to blame: its client left, its process died, its upstream broke off. */
  readonly excused: (useId: string) => void;
  /** A process died: what its requests had in hand is nobody's. */
  readonly crashed: (run: string) => void;
  readonly refunded: (passId: string) => void;
  /** Something else than a change of a use took effect. */
  readonly booksHold: () => void;
  readonly atRest: (calm: boolean) => void;
};

function isDrawn({ state }: PassDraw): boolean {
  return state === 'taken' || state === 'forfeited';
}

export function createDrawRules(scheduler: Scheduler, { passes, all: charges }: MemoryLedger): DrawRules {
  const violations: string[] = [];
  const owners = new Map<string, DrawingRequest>();
  const asks = new Map<string, number>();
  const deliveries: { readonly useId: string; readonly owner: string; readonly mayWait: boolean }[] = [];
  /** Requests whose use went to another one, or was given back and is not left any more, before they took it. */
  const forgone = new Set<string>();
  const excuses = new Set<string>();
  /** Requests whose reservation the ledger refused. */
  const refused = new Set<string>();
  /** Uses as they were when their books were last looked at. */
  const seen = new Map<string, PassDraw>();
  const crashed = new Set<string>();
  const violated = (what: string): void => {
    scheduler.say(`!!! ${what}`);
    violations.push(what);
  };
  const drawOf = (useId: string): PassDraw | undefined => passes.draws().find(({ id }) => id === useId);
  const isFirst = (useId: string): boolean => charges().some(({ id }) => firstUseOf(passIdOf(id)) === useId);
  const total = (draws: readonly PassDraw[]): bigint => draws.reduce((sum, { amount }) => sum + amount, 0n);

  /** What the request that bought a pass took of it with the settlement. Any other request has a use with a row of its own. */
  const takenAtOnce = (passId: string): bigint => {
    const charge = charges().find(({ id }) => id === chargeIdOfPass(passId));
    const sale = charge?.pass ? readPassInSale(charge.pass) : undefined;
    const isMetered = sale?.kind === 'credit' && sale.isMetered === true;
    return sale === undefined || isMetered || charge?.settle !== 'before_response' ? 0n : drawnBy(sale, sale.first);
  };

  const checkBook = (book: PassBook): void => {
    const { id, sold, drawn, reserved, uses, lost, left: gone } = book;
    const { left, lapsed } = standingOfBook(book, scheduler.now());
    if (drawn + left + reserved + lapsed !== sold) violated(`the sum of ${id} does not hold`);
    if ([drawn, left, reserved, lapsed].some((part) => part < 0n)) violated(`more was drawn on ${id} than was bought`);
    const draws = passes.draws().filter(({ passId }) => passId === id);
    if (total(draws.filter(({ state }) => state === 'reserved')) !== reserved)
      violated(`what is reserved of ${id} is not what its uses hold`);
    for (const draw of draws) {
      const { id: useId, amount, owner, state } = draw;
      const price = owners.get(owner)?.price;
      const before = seen.get(useId);
      seen.set(useId, draw);
      if (before?.state === 'taken' && state === 'taken' && amount !== before.amount)
        violated(`${useId} took ${before.amount}, and now ${amount}`);
      if (state === 'reserved' && amount !== price) violated(`${useId} reserves ${amount}, and its price is ${price}`);
      if (state === 'forfeited' && lost < GIVEN_BACK_AT_MOST)
        violated(`${useId} is taken because nobody ended it, and ${id} gave back ${lost} such uses`);
      if (state === 'forfeited' && before?.state === 'reserved' && amount !== before.amount)
        violated(`${useId} is taken because nobody ended it, ${amount} of ${before.amount}`);
    }
    const atOnce = takenAtOnce(id);
    const taken = draws.filter(isDrawn);
    if (drawn !== total(taken) + atOnce) violated(`what is drawn of ${id} is not what its uses took`);
    if (uses !== taken.length + (atOnce > 0n ? 1 : 0)) violated(`${id} counts ${uses} uses, and its uses are others`);
    if (Math.max(lost, gone) > GIVEN_BACK_AT_MOST) violated(`${id} gave more back than it may: ${lost} and ${gone}`);
  };
  const checkKey = ({ passId, key }: PassDraw): void => {
    const same = passes.draws().filter((draw) => draw.passId === passId && draw.key?.sha256 === key?.sha256);
    if (key !== null && same.length > 1) violated(`a key of ${passId} has ${same.length} uses`);
  };

  return {
    violations,
    violated,
    begin: (price) => ({
      ...{ price, takes: undefined, owner: undefined, useId: undefined },
      ...{ isGranted: false, isRefused: false, hasGivenBack: false },
    }),
    owned: (request, owner) => {
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
        // A copy of a word that was refused: the ledger does not remember refusals, and nobody works on the use. Its lease runs out.
        if (refused.has(change.owner)) excuses.add(after.id);
      }
      if (change.kind === 'reserve' && !('useId' in result)) refused.add(change.owner);
      if (change.kind === 'take' && after?.state === 'taken' && before?.state !== 'taken') {
        if (request?.hasGivenBack === true) violated(`${after.id} is taken for a request that gave it back`);
        if (after.amount !== request?.takes)
          violated(`${after.id} takes ${after.amount}, and by its response ${request?.takes}`);
      }
      // Its next request with the key has it from here on, and may send it again.
      if (result.kind === 'repeated' && before?.owner !== change.owner) excuses.add(result.useId);
      if (change.kind === 'give_back' && request !== undefined) request.hasGivenBack = true;
      const { left } = book === undefined ? { left: 0n } : standingOfBook(book, now);
      if (result.kind === 'used_up' && change.kind === 'reserve' && left >= change.amount)
        violated(`${change.passId} is called used up, and holds ${left}`);
      const own = all.get(change.useId);
      if (change.kind === 'take' && result.kind === 'lost' && own !== undefined) {
        const isEmpty = own.state === 'run_out' && left < (change.amount ?? own.amount);
        if (own.owner !== change.owner || isEmpty) forgone.add(change.owner);
      }
      if (book !== undefined) checkBook(book);
    },
    booksHold: () => {
      for (const book of passes.books()) checkBook(book);
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
    delivered: ({ owner = '' }, useId, isTakenAfterwards) => {
      // The use of the request that buys is told to the ledger until it hears: its money is taken, whatever becomes of it.
      const mayWait = isTakenAfterwards || isFirst(useId);
      deliveries.push({ useId, owner, mayWait });
      const { state = 'unknown to the ledger' } = drawOf(useId) ?? {};
      if (!mayWait && state !== 'taken') violated(`${useId} is delivered and ${state}`);
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
      for (const { useId, owner, mayWait } of deliveries) {
        const draw = drawOf(useId);
        // Its process died before it could say so, or stood still until the use was another's.
        const isForgone = mayWait && (crashed.has(runOf(owner)) || forgone.has(owner));
        if (draw !== undefined && !isDrawn(draw) && !isForgone) violated(`${useId} was delivered and is ${draw.state}`);
      }
      const delivered = new Set(deliveries.map(({ useId }) => useId));
      for (const draw of passes.draws())
        if (isDrawn(draw) && !delivered.has(draw.id) && !excuses.has(draw.id) && !crashed.has(runOf(draw.owner)))
          violated(`${draw.id} is taken and nobody had its answer`);
    },
  };
}

function runOf(owner: string): string {
  return owner.split('/')[0] ?? '';
}
