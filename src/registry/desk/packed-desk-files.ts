// Files of the desk as the package holds them: `desk/` beside the program, made by src/bundle.ts. The build puts this file
// in the place of desk-files.ts.
import { readdirSync, readFileSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import path from 'node:path';
import type { WebFiles } from '../../host/web-files.ts';

const FOLDER = path.join(import.meta.dirname, 'desk');

/** Names the file of the list that says what each file is. */
export const DESK_LIST = 'files.json';

export async function readDeskFiles(): Promise<WebFiles> {
  const list = JSON.parse(await readFile(path.join(FOLDER, DESK_LIST), 'utf8')) as readonly {
    readonly path: string;
    readonly file: string;
    readonly type: string;
    readonly etag: string;
  }[];
  const packed = new Set(readdirSync(FOLDER));
  const form = (name: string): Buffer | undefined =>
    packed.has(name) ? readFileSync(path.join(FOLDER, name)) : undefined;
  return new Map(
    list.map(({ path: at, file, type, etag }) => {
      const raw = form(file);
      if (raw === undefined) throw new Error(`The package lacks the desk's ${file}.`);
      return [at, { type, etag, raw, br: form(`${file}.br`), gz: form(`${file}.gz`) }];
    }),
  );
}
