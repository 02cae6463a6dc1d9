// Which view stands at which place.
import type { Place } from '../router/place.ts';
import { OverviewView } from './overview/overview.tsx';
import { RoutesView } from './routes/routes.tsx';

export function Views({ place }: { readonly place: Place }) {
  switch (place.view) {
    case 'overview':
      return <OverviewView />;
    case 'routes':
      return <RoutesView id={place.id} />;
    case 'charges':
    case 'try':
    case 'keys':
    case 'receivers':
    case 'audit':
    case 'api':
      return null;
    default:
      return place.view satisfies never;
  }
}
