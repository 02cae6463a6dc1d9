// The head of a view: its title, which takes the focus when the view opens, and what can be done here.
import type { ComponentChildren } from 'preact';
import { useEffect, useRef } from 'preact/hooks';

type PageHeadProps = {
  readonly title: string;
  readonly about?: ComponentChildren;
  readonly children?: ComponentChildren;
};

export function PageHead({ title, about, children }: PageHeadProps) {
  const heading = useRef<HTMLHeadingElement>(null);
  useEffect(() => {
    document.title = `${title} - Tollgate`;
    if (document.activeElement === null || document.activeElement === document.body)
      heading.current?.focus({ preventScroll: true });
  }, [title]);
  return (
    <header class="page-head">
      <div>
        <h1 ref={heading} tabIndex={-1}>
          {title}
        </h1>
        {about && <p class="muted">{about}</p>}
      </div>
      {children && <div class="page-actions">{children}</div>}
    </header>
  );
}
