// `tollgate openapi`: the interface as an OpenAPI 3.1 document, the same that a registry serves.
import { EXIT, type Command } from './command.ts';

export const openapi: Command = {
  name: 'openapi',
  summary: 'print the OpenAPI document of the registry',
  usage: ['tollgate openapi'],
  flags: {},
  words: { min: 0, max: 0 },
  run: async (_args, io) => {
    const [{ API }, { describeApi }] = await Promise.all([
      import('../registry/api.ts'),
      import('../registry/openapi.ts'),
    ]);
    io.out(JSON.stringify(describeApi(API, io.version), undefined, 2));
    return EXIT.fine;
  },
};
