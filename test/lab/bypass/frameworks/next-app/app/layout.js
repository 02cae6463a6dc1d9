import { createElement } from 'react';

export const dynamic = 'force-dynamic';

export default function Layout({ children }) {
  return createElement('html', undefined, createElement('body', undefined, children));
}
