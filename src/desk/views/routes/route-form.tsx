// The fields of a route, for one that is made and one that is changed.
import { Field } from '../../parts/field.tsx';
import type { RouteView } from '../../wire/billing.ts';

export type RouteValues = {
  readonly method: string;
  readonly route_pattern: string;
  readonly amount: string;
  readonly currency: string;
  readonly name: string;
  readonly description: string;
  readonly allow_anonymous: boolean;
  readonly receiver_config_id: string;
  readonly plan_id: string;
};

export type RouteFaults = Readonly<Record<string, string | null>>;

export const NEW_ROUTE: RouteValues = {
  ...{ method: 'GET', route_pattern: '', amount: '', currency: 'USDC', name: '', description: '' },
  ...{ allow_anonymous: true, receiver_config_id: '', plan_id: '' },
};

export function valuesOf(route: RouteView): RouteValues {
  return {
    ...{ method: route.method, route_pattern: route.route_pattern, amount: route.amount, currency: route.currency },
    ...{ name: route.name ?? '', description: route.description ?? '', allow_anonymous: route.allow_anonymous },
    receiver_config_id: route.receiver_config_id ?? '',
    plan_id: route.plan_id ?? '',
  };
}

/** Values as the registry takes them: nothing written is null. */
export function bodyOf(values: RouteValues): Record<string, string | boolean | null> {
  const text = (value: string): string | null => (value.trim() === '' ? null : value.trim());
  return {
    ...{ method: values.method, route_pattern: values.route_pattern.trim(), amount: values.amount.trim() },
    ...{
      currency: values.currency.trim().toUpperCase(),
      name: text(values.name),
      description: text(values.description),
    },
    ...{ allow_anonymous: values.allow_anonymous, receiver_config_id: text(values.receiver_config_id) },
    plan_id: text(values.plan_id),
  };
}

const METHODS = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE', 'HEAD', 'OPTIONS', '*'];

type RouteFieldsProps = {
  readonly values: RouteValues;
  readonly faults: RouteFaults;
  readonly onChange: (values: RouteValues) => void;
};

export function WhichRequests({ values, faults, onChange }: RouteFieldsProps) {
  const methods = METHODS.includes(values.method) ? METHODS : [values.method, ...METHODS];
  return (
    <div class="which">
      <Field label="Method" fault={faults['method']}>
        {(attributes) => (
          <select
            {...attributes}
            value={values.method}
            onChange={(event) => onChange({ ...values, method: event.currentTarget.value })}
          >
            {methods.map((method) => (
              <option key={method} value={method}>
                {method === '*' ? 'Any method' : method}
              </option>
            ))}
          </select>
        )}
      </Field>
      <Field label="Pattern" fault={faults['route_pattern']}>
        {(attributes) => (
          <input
            {...attributes}
            class="mono"
            spellcheck={false}
            autoComplete="off"
            autoCapitalize="off"
            placeholder="/reports/*"
            value={values.route_pattern}
            onInput={(event) => onChange({ ...values, route_pattern: event.currentTarget.value })}
          />
        )}
      </Field>
    </div>
  );
}

export function WhatItCosts({ values, faults, onChange }: RouteFieldsProps) {
  const text = (name: 'amount' | 'currency' | 'name' | 'description' | 'receiver_config_id' | 'plan_id') => ({
    value: values[name],
    autoComplete: 'off',
    onInput: (event: { currentTarget: HTMLInputElement | HTMLTextAreaElement }) =>
      onChange({ ...values, [name]: event.currentTarget.value }),
  });
  return (
    <div class="fields">
      <Field label="Price of one request" fault={faults['amount']}>
        {(attributes) => <input {...attributes} inputMode="decimal" placeholder="0.10" {...text('amount')} />}
      </Field>
      <Field label="Currency" fault={faults['currency']}>
        {(attributes) => <input {...attributes} spellcheck={false} maxLength={10} {...text('currency')} />}
      </Field>
      <Field label="Name" optional fault={faults['name']}>
        {(attributes) => <input {...attributes} maxLength={200} {...text('name')} />}
      </Field>
      <Field label="Receiver" optional fault={faults['receiver_config_id']}>
        {(attributes) => (
          <input {...attributes} spellcheck={false} placeholder="default" {...text('receiver_config_id')} />
        )}
      </Field>
      <Field label="Plan" optional fault={faults['plan_id']} hint="The id of a plan of the proxy's configuration.">
        {(attributes) => <input {...attributes} spellcheck={false} maxLength={64} {...text('plan_id')} />}
      </Field>
      <div class="whole">
        <Field label="Description" optional fault={faults['description']} hint="Payers read it in the 402.">
          {(attributes) => <textarea {...attributes} maxLength={1000} {...text('description')} />}
        </Field>
      </div>
      <label class="check whole">
        <input
          type="checkbox"
          checked={values.allow_anonymous}
          onChange={(event) => onChange({ ...values, allow_anonymous: event.currentTarget.checked })}
        />
        Payers need no customer id
      </label>
    </div>
  );
}
