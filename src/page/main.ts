// The program of the page for people: reads the data of the document and begins. It changes nothing that the page says
// without it, but that paid it shows the answer first.
import type { PageData } from '../domain/payment/page-data.ts';
import { Flow } from './flow.ts';
import { createKept } from './kept.ts';
import { completePrograms } from './programs.ts';
import { address } from './send.ts';
import { createView } from './view.ts';

function begin(): void {
  const data = JSON.parse(document.querySelector('#data')?.textContent ?? '{}') as PageData;
  const pay = document.querySelector('#pay');
  const main = document.querySelector('main');
  if (pay === null || main === null) return;
  completePrograms(address());
  const state = document.querySelector('#state');
  const place = (answer: HTMLElement | undefined, isPaid = false): void => {
    if (state !== null) state.textContent = isPaid ? 'Paid' : 'Payment required';
    main.classList.toggle('paid', isPaid);
    document.querySelector('.answer')?.remove();
    if (answer === undefined) return;
    // The answer comes first, in reading order too.
    if (isPaid) main.prepend(answer);
    else document.querySelector('.offer')?.before(answer);
  };
  new Flow({ data, view: createView(pay), kept: createKept(location), place }).begin();
}

begin();
