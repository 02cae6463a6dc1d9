// The port of a store for what needs somebody: findings of all processes that share it.
import type { AttentionFinding, AttentionPlan } from '../../domain/attention/attention.ts';

export type PublishedAttention = Pick<AttentionPlan, 'entries' | 'raised' | 'cleared'>;

/** Every call rejects with StoreUnavailable if the store cannot do or say it. */
export type AttentionStore = {
  /**
   * Writes what `source` finds now in place of what it found before; `now` is the store's clock. What is raised or cleared by it, over
   * all processes, is told to webhooks in the same transaction, once. Writes nothing if there is nothing new.
   */
  readonly publish: (source: string, findings: readonly AttentionFinding[], now: number) => Promise<PublishedAttention>;
};
