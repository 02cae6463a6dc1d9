// A pass as people see it. Its token is not in it: that is its holder's alone.
import { explorerPage } from '../../domain/payment/explorer.ts';
import { formatPrice } from '../../domain/payment/money.ts';
import { CREDIT_SCALE, standingOfBook } from '../../domain/selling/pass-book.ts';
import type { KeptPass } from '../../domain/selling/pass-opening.ts';
import type { NamedNetworks } from '../charges/charge-view.ts';
import type { PassView } from './pass-schemas.ts';

/** A pass at `now`. `networks` are those that are known by name. */
export function viewPass({ pass, book }: KeptPass, now: number, networks: NamedNetworks): PassView {
  const known = networks.find(pass.network);
  return {
    id: pass.passId,
    charge_id: pass.chargeId,
    status: stateOf({ pass, book }, now),
    ...{ plan: pass.planId, pass: pass.termsId, kind: pass.kind, scope: pass.scope, route_id: pass.routeId },
    payer: pass.payer,
    payer_url: known ? explorerPage(known.explorer, 'address', pass.payer) : null,
    network: pass.network,
    network_name: known?.name ?? null,
    ...{ amount: pass.amount, currency: pass.currency },
    seconds: pass.kind === 'seconds' ? pass.seconds : null,
    ...partsOf({ pass, book }, now),
    uses: pass.kind === 'seconds' ? null : book.uses,
    sold_at: iso(pass.soldAtMs),
    ends_at: iso(book.endsAt),
    revoked_at: book.revokedAt === null ? null : iso(book.revokedAt),
  };
}

function stateOf({ pass, book }: KeptPass, now: number): PassView['status'] {
  if (book.revokedAt !== null) return 'revoked';
  if (pass.kind !== 'seconds' && book.drawn >= book.sold) return 'used_up';
  return now >= book.endsAt ? 'ended' : 'live';
}

type Parts = Pick<PassView, 'sold' | 'drawn' | 'left' | 'reserved' | 'lapsed'>;

function partsOf({ pass, book }: KeptPass, now: number): Parts {
  if (pass.kind === 'seconds') return { sold: null, drawn: null, left: null, reserved: null, lapsed: null };
  const write = (units: bigint): string =>
    pass.kind === 'uses' ? units.toString() : formatPrice({ units, scale: CREDIT_SCALE });
  const { left, lapsed } = standingOfBook(book, now);
  const { sold, drawn, reserved } = book;
  return {
    ...{ sold: write(sold), drawn: write(drawn), left: write(left) },
    ...{ reserved: write(reserved), lapsed: write(lapsed) },
  };
}

function iso(ms: number): string {
  return new Date(ms).toISOString();
}
