// The program of the page for people: reads the data of the document and begins. It changes nothing that the page says
// without it.
import type { PageData } from '../domain/page-data.ts';
import { Flow } from './flow.ts';
import { createKept } from './kept.ts';
import { address } from './send.ts';
import { createView } from './view.ts';

function begin(): void {
  const data = JSON.parse(document.querySelector('#data')?.textContent ?? '{}') as PageData;
  const pay = document.querySelector('#pay');
  const url = document.querySelector('#url');
  if (pay === null) return;
  // The whole address, query included, as one word of a shell.
  if (url !== null) url.textContent = `'${address().replaceAll("'", "'\\''")}'`;
  const state = document.querySelector('#state');
  const place = (answer: HTMLElement | undefined, isPaid = false): void => {
    if (state !== null) state.textContent = isPaid ? 'Paid' : 'Payment required';
    document.querySelector('.answer')?.remove();
    if (answer !== undefined) document.querySelector('.more')?.before(answer);
  };
  new Flow({ data, view: createView(pay), kept: createKept(location), place }).begin();
}

begin();
