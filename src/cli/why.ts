// `tollgate why ID`: tells what became of a charge, a request or a transaction. It asks the running process, because
// that remembers what it refused. If none runs, the ledger and the id itself still say what they know.
import { join } from 'node:path';
import { dataFolderOf } from '../config/data-folder.ts';
import { askControl } from '../host/control.ts';
import type { WhyReport } from '../registry/charges/charge-schemas.ts';
import { shortId } from '../domain/payment/quote.ts';
import type { Args } from './args.ts';
import { EXIT, type Command, type ExitCode, type Io } from './command.ts';
import { CONFIG_FLAG, loadFor } from './configuration.ts';
import { messageOf } from '../host/error-message.ts';
import { SOCKET_FILE } from './runtime-files.ts';
import { whyOffline } from './why-offline.ts';
import { tellWhy } from './why-text.ts';

const MOST_CHARACTERS = 256;
const PASSED = [
  'A request that passed without a charge stands in the log alone, with its outcome: free (its route costs nothing), or by the',
  'plan of its route observed (a dry run), customer (somebody who need not pay), pass (paid for before) or quota (a free request).',
];

export const why: Command = {
  name: 'why',
  summary: 'say what became of a charge, a request or a transaction',
  usage: [
    'tollgate why ID [--config FILE] [--json]',
    '',
    'ID is a charge id, its beginning or its end, a request id (X-Request-Id) or a transaction. Of an unpaid 402 it says what',
    'the id says; of the last 10,000 refusals of the running process the reason. Exit code 1 if nothing is known of it.',
  ],
  examples: ['tollgate why chg_AaBbCcDdEeFf', 'tollgate why 0195d3c1-6c1e-7000-8000-3d2f1a0b4c5d --json'],
  flags: { ...CONFIG_FLAG, json: { help: 'print what GET /v1/billing/why/{id} answers' } },
  words: { min: 1, max: 1 },
  run: runWhy,
};

async function runWhy(args: Args, io: Io): Promise<ExitCode> {
  const [id = ''] = args.words;
  if (!/^[\x21-\x7e\u2026]+$/.test(id) || id.length > MOST_CHARACTERS) {
    io.err(`ID: is not 1 to ${MOST_CHARACTERS} visible characters`);
    return EXIT.usage;
  }
  const loaded = await loadFor(args, io);
  if (!loaded.ok) return loaded.code;
  const { whyBody } = await import('../registry/charges/charge-schemas.ts');
  const { isEmpty, ASK_THE_PROXY } = await import('../registry/charges/why-endpoint.ts');
  const asked = await askControl(join(dataFolderOf(loaded.config), SOCKET_FILE), `/why/${encodeURIComponent(id)}`);
  let answer: WhyReport;
  if (asked === undefined) {
    io.err('No Tollgate runs on this configuration, so what it refused is not known.');
    const told = await whyOffline(id, loaded.config, io).catch((error: unknown) => messageOf(error));
    if (typeof told === 'string') {
      io.err(told);
      return EXIT.away;
    }
    answer = told;
  } else {
    const read = whyBody.safeParse(asked.body);
    if (!read.success) {
      io.err('The running Tollgate could not say; its ledger may be away.');
      return EXIT.away;
    }
    answer = read.data;
    if (answer.refusals_elsewhere) io.err(ASK_THE_PROXY);
    if (answer.ledger_elsewhere)
      io.err('The ledger is the registry’s: ask there by request id or transaction; here whole charge ids are known.');
  }
  if (args.has('json')) io.out(JSON.stringify(answer));
  else for (const line of tellWhy(answer, Date.now())) io.out(line);
  if (!isEmpty(answer)) return EXIT.fine;
  if (args.has('json')) return EXIT.no;
  io.err(`Nothing is known of ${shortId(id)}.`);
  // A request that a plan let pass is neither a charge nor a refusal.
  if (loaded.config.selling.plans.byId.size > 0) for (const line of PASSED) io.err(line);
  return EXIT.no;
}
