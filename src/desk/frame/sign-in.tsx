// Signing in: by the link that a command prints, by a token, by the company's own sign-in. A page of its own at first; a dialog
// over the page if a session ends while somebody works, so that nothing written is lost.
import { useSignal } from '@preact/signals';
import { useDesk } from '../desk-context.ts';
import { CopyBlock } from '../parts/copied.tsx';
import { Dialog } from '../parts/dialog.tsx';
import { Prose } from '../parts/prose.tsx';
import { Field } from '../parts/field.tsx';
import { Mark } from './navigation.tsx';

type SignInProps = { readonly ways: readonly string[]; readonly said: string | null };

export function SignInPage({ ways, said }: SignInProps) {
  return (
    <main class="sign-in-page">
      <div class="sign-in-card">
        <div class="sign-in-brand">
          <Mark />
          <h1>Sign in to Tollgate</h1>
        </div>
        <SignInForm ways={ways} said={said} />
      </div>
    </main>
  );
}

export function SignInDialog({ ways, said }: SignInProps) {
  return (
    <Dialog title="Your session has ended">
      <p class="muted">Sign in again and go on: what stands on the page stays.</p>
      <SignInForm ways={ways} said={said} />
    </Dialog>
  );
}

function SignInForm({ ways, said }: SignInProps) {
  const { router } = useDesk();
  // A registry that names no way takes the two that need no configuration.
  const known = ways.length === 0 ? ['link', 'token'] : ways;
  const place = router.place.value;
  const here = place === null ? '/desk/' : location.pathname + location.search;
  return (
    <div class="sign-in">
      {said && (
        <p class="problem" role="alert">
          {said}
        </p>
      )}
      {known.includes('oidc') && (
        <a class="button primary wide" href={`/desk/oidc/start?to=${encodeURIComponent(here)}`}>
          Continue with single sign-on
        </a>
      )}
      {known.includes('link') && (
        <section>
          <h2>With a link</h2>
          <p class="muted">Run this where Tollgate runs and open what it prints. A link works once, for 5 minutes.</p>
          <CopyBlock text="tollgate desk --open" label="Command" />
        </section>
      )}
      {known.includes('token') && <TokenForm isFirst={!known.includes('oidc')} />}
    </div>
  );
}

/** `isFirst`: no other button of the page is the one that most people mean. */
function TokenForm({ isFirst }: { readonly isFirst: boolean }) {
  const { session } = useDesk();
  const token = useSignal('');
  const fault = useSignal<string | null>(null);
  const isBusy = useSignal(false);
  const send = async (): Promise<void> => {
    if (isBusy.value) return;
    if (token.value.trim() === '') {
      fault.value = 'Paste a token, or a link that `tollgate desk` printed.';
      return;
    }
    isBusy.value = true;
    fault.value = await session.signIn(credentialOf(token.value.trim()));
    isBusy.value = false;
  };
  return (
    <section>
      <h2>With a token</h2>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          void send();
        }}
      >
        <Field
          label="Token"
          fault={fault.value}
          hint={<Prose text="A dashboard token (JWT), such as `tollgate token` prints." />}
        >
          {(attributes) => (
            <input
              {...attributes}
              type="password"
              autoComplete="off"
              spellcheck={false}
              value={token.value}
              onInput={(event) => (token.value = event.currentTarget.value)}
            />
          )}
        </Field>
        <button type="submit" class={isFirst ? 'button primary wide' : 'button wide'} disabled={isBusy.value}>
          {isBusy.value ? 'Signing in' : 'Sign in'}
        </button>
      </form>
    </section>
  );
}

/** Who pastes the whole link means its code. */
function credentialOf(text: string): { readonly code: string } | { readonly token: string } {
  const code = /#code=([^&\s]+)/.exec(text)?.[1];
  return code === undefined ? { token: text } : { code };
}
