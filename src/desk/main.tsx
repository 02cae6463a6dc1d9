// The owners' desk: a page in the browser that shows what Tollgate earns and does. It speaks to the public endpoints of its
// own origin and to nothing else.
import { render } from 'preact';

function Desk() {
  return <h1>Tollgate</h1>;
}

document.addEventListener('DOMContentLoaded', () => {
  const root = document.getElementById('desk');
  if (root !== null) render(<Desk />, root);
});
