// The least that a Node process can do to answer: node:http with the same bytes every time, read from the file that the
// argument names. What Tollgate's 402 costs beyond this is Tollgate.
import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { announce } from './announce.ts';

export type ConstantAnswer = {
  readonly status: number;
  /** Name, value pairs. */
  readonly headers: readonly string[];
  readonly body: string;
};

const answer: ConstantAnswer = JSON.parse(readFileSync(process.argv[2] ?? '', 'utf8'));
const headers = [...answer.headers, 'Content-Length', String(Buffer.byteLength(answer.body))];
announce(
  createServer((_, res) => {
    res.writeHead(answer.status, headers);
    res.end(answer.body);
  }),
);
