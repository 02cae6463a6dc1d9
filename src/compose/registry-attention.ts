// What the process of a registry finds of its store, its configuration and the sidecars that report to it.
import type { AttentionFinding } from '../domain/attention/attention.ts';
import {
  judgeClock,
  judgeDifferences,
  judgeSilence,
  judgeStore,
  judgeWebhook,
} from '../domain/attention/judgements.ts';
import type { Clock, Random } from '../host/clock.ts';
import type { Registry } from '../registry/registry.ts';
import { knownSidecars, type SidecarFacts } from '../registry/sidecars/known-sidecars.ts';
import type { CommonSettings, Store } from '../registry/store/ports.ts';
import type { StoredLedger } from '../registry/store/stored-ledger.ts';
import type { Attention } from './attention.ts';
import { ledgerFindings, unknownFindings } from './ledger-findings.ts';
import type { Readiness } from './readiness.ts';

type RegistryFacts = {
  readonly store: Pick<Store, 'stats' | 'attention' | 'isShared' | 'charges'>;
  readonly ledger: StoredLedger;
  readonly readiness: Readiness;
  readonly registry: Pick<Registry, 'differences' | 'contacts'>;
  /** Settings that another process on the store has otherwise. */
  readonly differing: () => readonly (keyof CommonSettings)[];
  readonly clock: Clock;
  readonly random: Random;
};

/** Sidecars whose findings are read at most. */
const MOST_SIDECARS = 1_000;

export function watchRegistry(attention: Attention, facts: RegistryFacts): void {
  const { store, ledger, readiness, registry, differing, clock, random } = facts;
  // A file has one serving process: what an earlier life of it found is its own.
  const source = store.isShared ? `registry-${random(9).toString('base64url')}` : 'registry';
  attention.share((findings) => store.attention.publish(source, findings, ledger.now()));
  attention.add((isAsked) => ledgerFindings(readiness, isAsked));
  attention.add(() => unknownFindings(ledger));
  attention.add(async () => judgeStore(await store.stats()));
  attention.add(() => judgeDifferences(registry.differences().length, differing()));
  if (store.isShared) attention.add(() => judgeClock(clock.now() - ledger.now(), 'the database'));
  attention.add(async () => (await store.charges.webhooks.endpoints()).flatMap(judgeWebhook));
  attention.add(async () =>
    sidecarFindings({
      sources: await store.charges.totals.sources(),
      contacts: registry.contacts(),
      nowMs: ledger.now(),
    }),
  );
}

/** What sidecars reported of themselves, and those that report no more. */
function sidecarFindings(facts: SidecarFacts): readonly AttentionFinding[] {
  return knownSidecars(facts)
    .slice(0, MOST_SIDECARS)
    .flatMap(({ report, isSilent, lastSeenMs }) => {
      if (report === undefined) return [];
      if (isSilent) return judgeSilence(report.name, facts.nowMs - lastSeenMs);
      return (report.attention ?? []).map((each) =>
        each.subject === ''
          ? { ...each, subject: report.name, detail: `${report.name}: ${each.detail}`, link: '' }
          : { ...each, link: '' },
      );
    });
}
