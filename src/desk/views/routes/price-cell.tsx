// The price of a route in its row: a click or `e` makes a field of it, Enter saves, Escape leaves everything as it was.
import { useLayoutEffect, useRef } from 'preact/hooks';
import { useSignal } from '@preact/signals';
import { useDesk } from '../../desk-context.ts';
import { moneyText, priceFault } from '../../format/money.ts';
import { Icon } from '../../parts/icon.tsx';
import { problemText } from '../../parts/states.tsx';
import { Amount } from '../../parts/text.tsx';
import type { RouteView } from '../../wire/billing.ts';
import { Conflict } from './conflict.tsx';
import { nameOf, saveRoute, writeRoute, type RouteSaved } from './route-calls.ts';

type PriceCellProps = { readonly route: RouteView; readonly onSaved: (route: RouteView) => void };

type Met = { readonly theirs: RouteView; readonly etag: string | null };

export function PriceCell({ route, onSaved }: PriceCellProps) {
  const { client, notices, session } = useDesk();
  const text = useSignal<string | null>(null);
  const fault = useSignal<string | null>(null);
  const met = useSignal<Met | null>(null);
  const isBusy = useSignal(false);
  const button = useRef<HTMLButtonElement>(null);
  const close = (): void => {
    [text.value, fault.value, met.value] = [null, null, null];
    requestAnimationFrame(() => button.current?.focus());
  };
  const take = (saved: RouteSaved): void => {
    if (saved.kind === 'conflict') met.value = saved;
    else if (saved.kind === 'problem') [fault.value, met.value] = [problemText(saved.problem), null];
    else {
      onSaved(saved.route);
      notices.say(`${nameOf(saved.route)} costs ${moneyText(saved.route.amount, saved.route.currency)} from now on.`);
      close();
    }
  };
  const save = async (): Promise<void> => {
    const amount = text.value?.trim() ?? '';
    if (isBusy.value) return;
    if (amount === route.amount) return close();
    fault.value = priceFault(amount);
    if (fault.value !== null) return;
    isBusy.value = true;
    take(await saveRoute(client, route, { amount }));
    isBusy.value = false;
  };
  if (!session.isAdmin.value) return <Amount amount={route.amount} currency={route.currency} />;
  if (text.value === null)
    return (
      <button
        type="button"
        ref={button}
        class="price"
        data-edit
        aria-label={`Change the price of ${nameOf(route)}: ${moneyText(route.amount, route.currency)}`}
        onClick={() => (text.value = route.amount)}
      >
        <Icon name="edit" size={14} />
        <Amount amount={route.amount} currency={route.currency} />
      </button>
    );
  return (
    <>
      <PriceField
        route={route}
        text={text.value}
        fault={fault.value}
        onText={(next) => (text.value = next)}
        onSave={() => void save()}
        onLeave={() => {
          if (met.value === null && !isBusy.value) close();
        }}
      />
      {met.value !== null && (
        <Conflict
          theirs={met.value.theirs}
          mine={{ amount: text.value.trim() }}
          onTake={() => {
            if (met.value !== null) onSaved(met.value.theirs);
            close();
          }}
          onKeep={() => {
            const [etag, draft] = [met.value?.etag ?? null, { amount: text.value?.trim() ?? '' }];
            void writeRoute(client, { id: route.id, draft, etag }).then(take);
          }}
        />
      )}
    </>
  );
}

type PriceFieldProps = {
  readonly route: RouteView;
  readonly text: string;
  readonly fault: string | null;
  readonly onText: (text: string) => void;
  readonly onSave: () => void;
  readonly onLeave: () => void;
};

function PriceField({ route, text, fault, onText, onSave, onLeave }: PriceFieldProps) {
  const field = useRef<HTMLInputElement>(null);
  useLayoutEffect(() => {
    field.current?.focus();
    field.current?.select();
  }, []);
  return (
    <form
      class="price-form"
      onSubmit={(event) => {
        event.preventDefault();
        onSave();
      }}
    >
      <input
        ref={field}
        inputMode="decimal"
        autoComplete="off"
        aria-label={`New price of ${nameOf(route)} in ${route.currency}; Enter saves, Escape leaves`}
        aria-invalid={fault !== null}
        value={text}
        onInput={(event) => onText(event.currentTarget.value)}
        onKeyDown={(event) => {
          if (event.key === 'Escape') onLeave();
        }}
      />
      <button type="submit" class="button primary small">
        Save
      </button>
      <button type="button" class="button small" onClick={onLeave}>
        Leave
      </button>
      {fault !== null && (
        <p class="fault" role="alert">
          {fault}
        </p>
      )}
    </form>
  );
}
