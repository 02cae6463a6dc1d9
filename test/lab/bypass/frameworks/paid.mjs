// The counter of every upstream in this folder: a protected handler appends one byte to the file that HITS names.
import { openSync, writeSync } from 'node:fs';

let file;

export function paid() {
  file ??= openSync(process.env.HITS, 'a');
  writeSync(file, 'x');
  return 'paid for';
}

export function free() {
  return 'free';
}
