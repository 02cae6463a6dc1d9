// What every page of the API shows.
import { createElement } from 'react';

export default function Page({ text }) {
  return createElement('p', undefined, text);
}
