// Files of charges: GET /v1/billing/charges.csv, those of a time, and GET /v1/billing/owed.csv, those that are owed. A file is
// written as fast as it is read, a few rows a turn, so that neither memory nor requests notice its length. Once it has begun,
// a fault breaks the connection: a file that ends is whole. Few are written at a time.
import type { ServerResponse } from 'node:http';
import type { z } from 'zod';
import type { ChargePage, ListedCharge } from '../../domain/payment/reports.ts';
import { problem } from '../../domain/problem.ts';
import { fail, type EndpointCall, type EndpointOutcome } from '../http/endpoint.ts';
import type { Services } from '../http/services.ts';
import { CSV_TYPE, csvHeader, csvLine } from './charge-csv.ts';
import { unreadableQ } from './charge-endpoints.ts';
import { readFilter } from './charge-filter.ts';
import type { chargesCsvQuery, owedCsvQuery } from './charge-schemas.ts';
import { viewCharge } from './charge-view.ts';
import { EXPORTS_AT_ONCE } from './export-places.ts';
import { withLedger } from './ledger-endpoints.ts';
import { owedHeader, owedLine } from './owed-csv.ts';

const MAX_DAYS = 92;
const DAY_MS = 24 * 3_600_000;
const RETRY_SECONDS = 10;
/** Rows that are read, shown and written in one turn: a few milliseconds. */
const ROWS = 200;
/** Longest wait for a reader that takes nothing. */
const STALLED_MS = 60_000;

export function exportCharges(
  { query }: EndpointCall<unknown, z.output<typeof chargesCsvQuery>>,
  services: Services,
): Promise<EndpointOutcome> {
  return withLedger(services, async (ledger) => {
    const { from, to } = query;
    if (from >= to) return fail(problem('malformed', "The query's from is not before its to."));
    if (to - from > MAX_DAYS * DAY_MS)
      return fail(problem('malformed', `From and to are more than ${MAX_DAYS} days apart; ask for less at a time.`));
    const reading = readFilter(query, ledger.spelling);
    if (reading.kind === 'unreadable') return fail(unreadableQ(reading.message));
    return writeFile(services, {
      name: `charges-${dayOf(from)}-${dayOf(to)}.csv`,
      read: (before) => ledger.list({ ...reading.filter, limit: ROWS, before }),
      header: csvHeader(),
      line: (charge) => csvLine(viewCharge(charge, services.networks)),
    });
  });
}

/** GET /v1/billing/owed.csv: whom to give money back, whatever its age. */
export function exportOwed(
  { query }: EndpointCall<unknown, z.output<typeof owedCsvQuery>>,
  services: Services,
): Promise<EndpointOutcome> {
  return withLedger(services, async (ledger) => {
    const reading = readFilter({ ...query, owed: true }, ledger.spelling);
    if (reading.kind === 'unreadable') return fail(unreadableQ(reading.message));
    return writeFile(services, {
      name: `owed-${dayOf(services.clock.now())}.csv`,
      read: (before) => ledger.list({ ...reading.filter, limit: ROWS, before }),
      header: owedHeader(),
      line: owedLine,
    });
  });
}

/** A file of charges, page by page. */
type ChargeFile = {
  readonly name: string;
  readonly read: (before: number | undefined) => Promise<ChargePage>;
  readonly header: string;
  readonly line: (charge: ListedCharge) => string;
};

async function writeFile(services: Pick<Services, 'exports' | 'log'>, file: ChargeFile): Promise<EndpointOutcome> {
  const leave = services.exports.take();
  if (leave === undefined)
    return fail(
      problem('too_many_requests', `${EXPORTS_AT_ONCE} exports are being written, as many as may be; try again.`, {
        retryAfter: RETRY_SECONDS,
      }),
    );
  try {
    // Read before the status line is sent: a ledger that is away is a problem, not a file that breaks off.
    const first = await file.read(undefined);
    return {
      kind: 'stream',
      headers: [
        ...['Content-Type', CSV_TYPE, 'Cache-Control', 'no-store', 'X-Accel-Buffering', 'no'],
        ...['Content-Disposition', `attachment; filename="${file.name}"`],
      ],
      open: (res) => {
        res.once('close', leave);
        writeAll(res, first, file).catch((error: unknown) => {
          if (!res.destroyed) services.log.warn('an export of charges broke off', { error });
          breakOff(res);
        });
      },
      unopened: leave,
    };
  } catch (error) {
    leave();
    throw error;
  }
}

async function writeAll(res: ServerResponse, first: ChargePage, { read, header, line }: ChargeFile): Promise<void> {
  let page = first;
  let text = header;
  for (;;) {
    text += page.charges.map(line).join('');
    if (!res.write(text)) await drained(res);
    if (page.nextBefore === undefined) break;
    page = await read(page.nextBefore);
    text = '';
  }
  res.end();
}

/** Rejects if its reader is gone, or takes nothing for too long. */
function drained(res: ServerResponse): Promise<void> {
  return new Promise((resolve, reject) => {
    const end = (settle: () => void): void => {
      clearTimeout(timer);
      res.off('drain', onDrain);
      res.off('close', onClose);
      settle();
    };
    const onDrain = (): void => end(resolve);
    const onClose = (): void => end(() => reject(new Error('the reader is gone')));
    const timer = setTimeout(() => end(() => reject(new Error('the reader takes nothing'))), STALLED_MS);
    timer.unref();
    res.once('drain', onDrain);
    res.once('close', onClose);
    if (res.destroyed) onClose();
  });
}

/** A reset, which no reader takes for the end of a file, whatever version of HTTP it speaks. */
function breakOff(res: ServerResponse): void {
  if (res.socket === null) res.destroy();
  else res.socket.resetAndDestroy();
}

function dayOf(ms: number): string {
  return new Date(ms).toISOString().slice(0, 10);
}
