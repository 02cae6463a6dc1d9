// `tollgate charges`: known, and not in this version.
import { EXIT, type Command } from './command.ts';

export const charges: Command = {
  name: 'charges',
  summary: 'not in this version',
  usage: ['tollgate charges list | show | reconcile', '', 'Not in this version.'],
  flags: {},
  words: { min: 0, max: 10 },
  run: async (_args, io) => {
    io.err('charges: not in this version');
    return EXIT.usage;
  },
};
