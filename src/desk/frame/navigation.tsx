// The frame's navigation: a rail on a wide screen, a row below its top bar on a middle one, five entries at the bottom of a phone.
import { useSignal } from '@preact/signals';
import { useDesk } from '../desk-context.ts';
import { Choice } from '../parts/choice.tsx';
import { Dialog } from '../parts/dialog.tsx';
import { Icon, type IconName } from '../parts/icon.tsx';
import { hrefOf, type ViewName } from '../router/view-addresses.ts';
import { THEMES, type Theme } from './settings.ts';

type Entry = { readonly view: ViewName & IconName; readonly text: string };

const ENTRIES: readonly Entry[] = [
  { view: 'overview', text: 'Overview' },
  { view: 'routes', text: 'Routes' },
  { view: 'try', text: 'Try it' },
  { view: 'charges', text: 'Charges' },
  { view: 'plans', text: 'Plans' },
  { view: 'passes', text: 'Passes' },
  { view: 'keys', text: 'Keys' },
  { view: 'receivers', text: 'Receivers' },
  { view: 'audit', text: 'Audit' },
  { view: 'api', text: 'API' },
];
const ON_A_PHONE: ReadonlySet<ViewName> = new Set(['overview', 'routes', 'charges', 'try']);

export function Mark() {
  return (
    <svg class="mark" width="24" height="24" viewBox="0 0 32 32" aria-hidden="true" focusable="false">
      <rect width="32" height="32" rx="8" />
      <path d="M9 23V11M23 23V11M6.5 11h19M13 23l9-7" />
    </svg>
  );
}

export function Rail({ onHelp }: { readonly onHelp: () => void }) {
  const { session } = useDesk();
  const state = session.state.value;
  return (
    <div class="rail">
      <a class="brand" href={hrefOf('overview')}>
        <Mark />
        <span>Tollgate</span>
      </a>
      {state.kind === 'in' && state.session.testnet && <Testnet />}
      <nav class="rail-nav" aria-label="Views">
        {ENTRIES.map((entry) => (
          <NavigationLink key={entry.view} entry={entry} />
        ))}
      </nav>
      <div class="rail-foot">
        <Preferences onHelp={onHelp} />
        <Whoever />
      </div>
    </div>
  );
}

export function BottomBar({ onHelp }: { readonly onHelp: () => void }) {
  const { router } = useDesk();
  const isOpen = useSignal(false);
  const view = router.place.value?.view;
  const isElsewhere = view !== undefined && !ON_A_PHONE.has(view);
  return (
    <>
      <nav class="bottom-bar" aria-label="Main views">
        {ENTRIES.filter((entry) => ON_A_PHONE.has(entry.view)).map((entry) => (
          <NavigationLink key={entry.view} entry={entry} />
        ))}
        <button
          type="button"
          class={isElsewhere ? 'here' : ''}
          aria-expanded={isOpen.value}
          onClick={() => (isOpen.value = true)}
        >
          <Icon name="more" />
          <span>More</span>
        </button>
      </nav>
      {isOpen.value && (
        <Dialog title="More" onClose={() => (isOpen.value = false)}>
          <nav class="more-nav" aria-label="Other views">
            {ENTRIES.filter((entry) => !ON_A_PHONE.has(entry.view)).map((entry) => (
              <NavigationLink key={entry.view} entry={entry} onGo={() => (isOpen.value = false)} />
            ))}
          </nav>
          <div class="more-foot">
            <Preferences onHelp={onHelp} />
            <Whoever />
          </div>
        </Dialog>
      )}
    </>
  );
}

function NavigationLink({ entry, onGo }: { readonly entry: Entry; readonly onGo?: () => void }) {
  const { router } = useDesk();
  const isHere = router.place.value?.view === entry.view;
  return (
    <a href={hrefOf(entry.view)} {...(isHere ? { 'aria-current': 'page' as const } : {})} onClick={onGo}>
      <Icon name={entry.view} />
      <span>{entry.text}</span>
    </a>
  );
}

export function Testnet() {
  return (
    <span class="testnet" title="At least one way to pay uses a test network: its money is worth nothing.">
      Testnet
    </span>
  );
}

const THEME_WORDS: Readonly<Record<Theme, { readonly text: string; readonly icon: IconName }>> = {
  system: { text: 'As the system', icon: 'system' },
  light: { text: 'Light', icon: 'sun' },
  dark: { text: 'Dark', icon: 'moon' },
};

function Preferences({ onHelp }: { readonly onHelp: () => void }) {
  const { settings } = useDesk();
  return (
    <div class="preferences">
      <Choice
        label="Theme"
        value={settings.theme.value}
        onChange={(theme) => (settings.theme.value = theme)}
        options={THEMES.map((value) => ({
          value,
          text: THEME_WORDS[value].text,
          icon: <Icon name={THEME_WORDS[value].icon} size={16} />,
        }))}
      />
      <button type="button" class="button quiet square" aria-label="Keyboard" title="Keyboard" onClick={onHelp}>
        <Icon name="keyboard" />
      </button>
    </div>
  );
}

function Whoever() {
  const { session, times } = useDesk();
  const state = session.state.value;
  if (state.kind !== 'in') return null;
  const { subject, role, version, expires_at: ends } = state.session;
  return (
    <div class="whoever">
      <div title={`Version ${version}. Signed in until ${times.whole(Date.parse(ends))}.`}>
        <strong>{subject}</strong>
        <span class="muted">{role === 'admin' ? 'Admin' : 'Viewer: may look, not change'}</span>
      </div>
      <button type="button" class="button small" onClick={() => void session.signOut()}>
        Sign out
      </button>
    </div>
  );
}
