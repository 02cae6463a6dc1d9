// Which view stands at which place.
import type { Place } from '../router/view-addresses.ts';
import { AuditView } from './audit/audit-view.tsx';
import { ChargesView } from './charges/charges.tsx';
import { KeysView } from './keys/keys-view.tsx';
import { OverviewView } from './overview/overview.tsx';
import { PassesView } from './passes/passes-view.tsx';
import { PlansView } from './plans/plans.tsx';
import { ReceiversView } from './receivers/receivers.tsx';
import { ReferenceView } from './reference/reference.tsx';
import { RoutesView } from './routes/routes.tsx';
import { TryView } from './try/try.tsx';

export function Views({ place }: { readonly place: Place }) {
  switch (place.view) {
    case 'overview':
      return <OverviewView />;
    case 'routes':
      return <RoutesView id={place.id} />;
    case 'charges':
      return <ChargesView id={place.id} />;
    case 'try':
      return <TryView />;
    case 'plans':
      return <PlansView />;
    case 'passes':
      return <PassesView id={place.id} />;
    case 'keys':
      return <KeysView />;
    case 'receivers':
      return <ReceiversView />;
    case 'audit':
      return <AuditView />;
    case 'api':
      return <ReferenceView />;
    default:
      return place.view satisfies never;
  }
}
