// Charges as they happen: the stream of their changes, gathered for one drawing at a time.
import { useEffect } from 'preact/hooks';
import { useSignal } from '@preact/signals';
import { useDesk } from '../../desk-context.ts';
import { openLive, type LiveState } from '../../net/live.ts';
import type { ChargeRecord } from '../../wire/billing.ts';
import { mergeCharges } from './charge-merge.ts';

const KEPT = 200;

/** Charges that changed since the view was opened, newest first, and whether the stream is on. */
export function useLiveCharges(isOn: boolean): { state: LiveState; changed: readonly ChargeRecord[]; skipped: number } {
  const { client, session } = useDesk();
  const state = useSignal<LiveState>('connecting');
  const changed = useSignal<readonly ChargeRecord[]>([]);
  const skipped = useSignal(0);
  const generation = session.generation.value;
  useEffect(() => {
    if (!isOn) return undefined;
    let waiting: ChargeRecord[] = [];
    let frame = 0;
    // A hundred events in one frame are one drawing.
    const flush = (): void => {
      frame = 0;
      changed.value = mergeCharges(changed.value, waiting).slice(0, KEPT);
      waiting = [];
    };
    const close = openLive({
      client,
      path: '/v1/billing/charges/events',
      tell: (next) => (state.value = next),
      take: ({ type, data }) => {
        if (type === 'skipped') skipped.value += (JSON.parse(data) as { count?: number }).count ?? 0;
        if (type !== 'charge') return;
        waiting.push(JSON.parse(data) as ChargeRecord);
        frame ||= requestAnimationFrame(flush);
      },
    });
    return () => {
      close();
      cancelAnimationFrame(frame);
    };
  }, [isOn, generation]);
  return { state: isOn ? state.value : 'waiting', changed: changed.value, skipped: skipped.value };
}
