// Writes a set of routes as the text of a feed, in pieces that each take about a millisecond. Other work runs in
// between while 100,000 routes are written. The text is the bare array that a registry answers.
import { toWire, type Route } from '../../domain/routing/route.ts';

const SLICE = 500;

export function* feedPieces(routes: readonly Route[]): Generator<string, void, undefined> {
  for (let start = 0; start < routes.length; start += SLICE) {
    const slice = routes.slice(start, start + SLICE).map((route) => JSON.stringify(toWire(route)));
    yield `${start === 0 ? '[' : ','}${slice.join(',')}`;
  }
  yield routes.length === 0 ? '[]' : ']';
}
