// `tollgate version`: prints the versions of Tollgate and of Node.
import { EXIT, type Command } from './command.ts';

export const version: Command = {
  name: 'version',
  summary: 'print the version',
  usage: ['tollgate version [--json]'],
  examples: ['tollgate version', 'tollgate version --json'],
  flags: { json: { help: 'print {version, node}' } },
  words: { min: 0, max: 0 },
  run: async (args, io) => {
    const node = process.version;
    io.out(args.has('json') ? JSON.stringify({ version: io.version, node }) : `tollgate ${io.version} (node ${node})`);
    return EXIT.fine;
  },
};
