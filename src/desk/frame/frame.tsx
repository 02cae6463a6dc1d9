// The frame around every view: navigation, notices, the dialog of a session that ended, the line that says the network is away.
import { useEffect } from 'preact/hooks';
import { useSignal } from '@preact/signals';
import { useDesk } from '../desk-context.ts';
import { Dialog } from '../parts/dialog.tsx';
import { Icon } from '../parts/icon.tsx';
import { Empty, ProblemBox, Skeleton } from '../parts/states.tsx';
import { hrefOf } from '../router/view-addresses.ts';
import { Views } from '../views/views.tsx';
import { BottomBar, Mark, Rail, Testnet } from './navigation.tsx';
import { listenForShortcuts, SHORTCUTS } from './shortcuts.ts';
import { SignInDialog, SignInPage } from './sign-in.tsx';

export function Frame() {
  const { router, session, settings, isOnline } = useDesk();
  const isHelpOpen = useSignal(false);
  const showHelp = (): void => {
    isHelpOpen.value = true;
  };
  useEffect(
    () =>
      listenForShortcuts({
        document,
        showHelp,
        isOn: () => settings.hasShortcuts.value && session.state.value.kind === 'in',
        go: (href) => router.go(href),
      }),
    [],
  );
  const state = session.state.value;
  if (state.kind === 'out' && !state.wasIn) return <SignInPage ways={state.ways} said={state.said} />;
  const place = router.place.value;
  return (
    <div class="frame">
      <a class="skip" href="#content">
        Skip to the content
      </a>
      <header class="bar">
        <Rail onHelp={showHelp} />
        <PhoneBar />
      </header>
      <main id="content" tabIndex={-1}>
        {!isOnline.value && (
          <p class="offline" role="status">
            <Icon name="warn" size={16} />
            You are offline. What stands here is what was known before.
          </p>
        )}
        {state.kind === 'asking' && <Waiting />}
        {state.kind === 'away' && <ProblemBox problem="away" again={() => void session.begin()} />}
        {(state.kind === 'in' || state.kind === 'out') &&
          (place === null ? <NoSuchView /> : <Views key={place.view} place={place} />)}
      </main>
      <BottomBar onHelp={showHelp} />
      <NoticeList />
      {isHelpOpen.value && <KeyboardHelp onClose={() => (isHelpOpen.value = false)} />}
      {state.kind === 'out' && <SignInDialog ways={state.ways} said={state.said} />}
    </div>
  );
}

function PhoneBar() {
  const { session } = useDesk();
  const state = session.state.value;
  return (
    <div class="phone-bar">
      <a class="brand" href={hrefOf('overview')}>
        <Mark />
        <span>Tollgate</span>
      </a>
      {state.kind === 'in' && state.session.testnet && <Testnet />}
    </div>
  );
}

/** Nothing for as long as nobody would call it waiting. */
function Waiting() {
  const isSlow = useSignal(false);
  useEffect(() => {
    const timer = setTimeout(() => (isSlow.value = true), 150);
    return () => clearTimeout(timer);
  }, []);
  return isSlow.value ? <Skeleton lines={4} tall /> : null;
}

function NoSuchView() {
  return (
    <Empty title="There is no such page" action={<a href={hrefOf('overview')}>Go to the overview</a>}>
      The address names nothing of this desk.
    </Empty>
  );
}

function NoticeList() {
  const { notices } = useDesk();
  return (
    <div class="notices" role="status" aria-live="polite">
      {notices.shown.value.map(({ id, text, tone, action }) => (
        <div key={id} class={`notice ${tone}`}>
          <Icon name={tone === 'good' ? 'check' : 'warn'} size={16} />
          <span>{text}</span>
          {action && (
            <button
              type="button"
              class="button small"
              onClick={() => {
                notices.close(id);
                action.run();
              }}
            >
              {action.label}
            </button>
          )}
          <button type="button" class="button quiet square" aria-label="Put away" onClick={() => notices.close(id)}>
            <Icon name="close" size={14} />
          </button>
        </div>
      ))}
    </div>
  );
}

function KeyboardHelp({ onClose }: { readonly onClose: () => void }) {
  const { settings } = useDesk();
  return (
    <Dialog title="Keyboard" onClose={onClose}>
      <table class="keys-table">
        <thead class="unseen">
          <tr>
            <th scope="col">Keys</th>
            <th scope="col">What they do</th>
          </tr>
        </thead>
        <tbody>
          {SHORTCUTS.map(([keys, what]) => (
            <tr key={keys}>
              <th scope="row">
                {keys.split(' ').map((key) => (
                  <kbd key={key}>{key}</kbd>
                ))}
              </th>
              <td>{what}</td>
            </tr>
          ))}
        </tbody>
      </table>
      <label class="check">
        <input
          type="checkbox"
          checked={settings.hasShortcuts.value}
          onChange={(event) => (settings.hasShortcuts.value = event.currentTarget.checked)}
        />
        Single keys do something
      </label>
    </Dialog>
  );
}
