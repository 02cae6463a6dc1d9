// A change that met somebody else's: theirs and mine side by side, and a choice. Nothing is lost until it is made.
import { useDesk } from '../../desk-context.ts';
import { Dialog } from '../../parts/dialog.tsx';
import { agoText } from '../../format/moments.ts';
import type { RouteView } from '../../wire/billing.ts';
import { nameOf, type RouteDraft } from './route-calls.ts';

type ConflictProps = {
  readonly theirs: RouteView;
  readonly mine: RouteDraft;
  readonly onTake: () => void;
  readonly onKeep: () => void;
};

export function Conflict({ theirs, mine, onTake, onKeep }: ConflictProps) {
  const { now } = useDesk();
  const members = Object.keys(mine).filter((name): name is keyof RouteView => name in theirs);
  return (
    <Dialog title="Somebody changed this route" onClose={onTake}>
      <p class="muted">
        <code>{nameOf(theirs)}</code> was changed {agoText(Date.parse(theirs.updated_at), now())}, while you wrote.
        Nothing of yours is saved yet.
      </p>
      <table class="conflict">
        <thead>
          <tr>
            <th scope="col">Field</th>
            <th scope="col">Theirs</th>
            <th scope="col">Mine</th>
          </tr>
        </thead>
        <tbody>
          {members.map((name) => (
            <tr key={name} class={theirs[name] === mine[name] ? '' : 'differs'}>
              <th scope="row">{FIELD_WORDS[name] ?? name}</th>
              <td>{wordOf(theirs[name])}</td>
              <td>{wordOf(mine[name])}</td>
            </tr>
          ))}
        </tbody>
      </table>
      <div class="dialog-foot">
        <button type="button" class="button" onClick={onTake}>
          Take theirs
        </button>
        <button type="button" class="button primary" onClick={onKeep}>
          Keep mine
        </button>
      </div>
    </Dialog>
  );
}

export const FIELD_WORDS: Readonly<Record<string, string>> = {
  ...{ route_pattern: 'Pattern', method: 'Method', amount: 'Price', currency: 'Currency', name: 'Name' },
  ...{ description: 'Description', status: 'Status', allow_anonymous: 'Without a customer id' },
  ...{ receiver_config_id: 'Receiver', plan_id: 'Plan', source: 'Source' },
};

export function wordOf(value: unknown): string {
  if (value === null || value === undefined || value === '') return 'none';
  if (typeof value === 'boolean') return value ? 'yes' : 'no';
  return typeof value === 'string' || typeof value === 'number' ? String(value) : JSON.stringify(value);
}
