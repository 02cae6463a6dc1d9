// The program of the page for people: so far it takes away nothing and adds nothing.
// What the page says stands in its document.
import type { PageData } from '../domain/page-data.ts';

const data = JSON.parse(document.querySelector('#data')?.textContent ?? '{}') as PageData;
document.documentElement.dataset['ways'] = String(data.ways.length);
