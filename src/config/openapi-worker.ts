// A thread that reads one OpenAPI document. Whatever the file holds costs only this thread's memory and time, and both
// are bounded. It says what it found and ends.
import { readFileSync, statSync } from 'node:fs';
import { parentPort, workerData } from 'node:worker_threads';
import { readOpenApi, type OpenApi, type Remark } from '../domain/discovery/openapi.ts';
import { readDocumentOf } from './document.ts';
import { codeOf } from './secret-files.ts';
import { createBounded } from './time-budget.ts';

export const MAX_BYTES = 2 * 1024 * 1024;
const MAX_VALUES = 200_000;
/** An ordinary operation takes about a millisecond. */
const PER_OPERATION = { eachMs: 500, lateMs: 2_000, leastMs: 5 };

function read(file: string): OpenApi | Remark {
  let text: string;
  try {
    if (statSync(file).size > MAX_BYTES) return { line: 1, message: `is larger than ${MAX_BYTES} bytes` };
    text = readFileSync(file, 'utf8');
  } catch (error) {
    return { line: 1, message: `cannot be read (${codeOf(error)}); check its name and permissions` };
  }
  const document = readDocumentOf({ name: 'OpenAPI document', maxValues: MAX_VALUES, env: undefined }, text);
  const [fault] = document.syntax;
  if (fault !== undefined) return fault;
  return readOpenApi(document.data, (path) => document.locate(path, 'key').line, createBounded(PER_OPERATION));
}

parentPort?.postMessage(read(String(workerData)), []);
