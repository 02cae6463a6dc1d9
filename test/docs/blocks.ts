// The code of a document: its fenced blocks, each under the name that its first line gives it in a comment. What a
// reader copies is what a test runs.
import { readText } from '../deploy/support.ts';

export type Block = {
  readonly language: string;
  /** What the comment in the first line says; without one the block's first line. */
  readonly name: string;
  readonly text: string;
};

export function readBlocks(file: string): readonly Block[] {
  return [...readText(file).matchAll(/^```(\w+)\n([\s\S]*?)^```$/gm)].map(([, language = '', text = '']) => {
    const [first = ''] = text.split('\n', 1);
    return { language, name: first.replace(/^(?:\/\/|#) /, ''), text };
  });
}

/** The block of this name; throws if the document has none. */
export function findBlock(blocks: readonly Block[], name: string): Block {
  const found = blocks.find((block) => block.name === name);
  if (found === undefined) throw new Error(`no block is called ${name}`);
  return found;
}

/** The cells of every row of the tables whose first head cell is `head`. */
export function readTable(file: string, head: string): readonly (readonly string[])[] {
  const lines = readText(file).split('\n');
  const cells = (line: string): string[] =>
    line
      .slice(1, -1)
      .split(/(?<!\\)\|/)
      .map((cell) => cell.trim());
  return lines.flatMap((line, at) => {
    if (!line.startsWith('|') || cells(line)[0] !== head || !/^\|[-| ]+\|$/.test(lines[at + 1] ?? '')) return [];
    const rest = lines.slice(at + 2);
    const end = rest.findIndex((row) => !row.startsWith('|'));
    return rest.slice(0, end < 0 ? rest.length : end).map(cells);
  });
}
