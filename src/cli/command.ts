// The type of a command, and all that a command may touch of the process. A command returns its exit code and never
// exits; what was asked for goes to `out`, talk and complaints go to `err`.
import type { Env } from '../config/environment.ts';
import type { Args, Flags } from './args.ts';

/** Exit codes of the README. `no`: the answer is no. `away`: something that is needed is not there. */
export const EXIT = { fine: 0, no: 1, usage: 64, away: 69 } as const;
export type ExitCode = (typeof EXIT)[keyof typeof EXIT];

export type Io = {
  /** Standard output, one line; the line end is added. */
  readonly out: (line: string) => void;
  /** Standard output, as it is; `atOnce`: not with others of its turn. */
  readonly write: (text: string, atOnce?: boolean) => void;
  /** Standard error, one line. */
  readonly err: (line: string) => void;
  readonly env: Env;
  /** The working folder. */
  readonly folder: string;
  /** Options that Node itself was started with. */
  readonly execArgv: readonly string[];
  /** Whether the HTTP parser takes what a strict one refuses. */
  readonly lenientParser: () => Promise<boolean>;
  /** Whether a person sits at a terminal, and whether standard output is shown there. */
  readonly terminal: { readonly attended: boolean; readonly shown: boolean };
  /** Number of the user who runs the program; undefined if the system has no users. */
  readonly uid: number | undefined;
  readonly version: string;
  /** Words that people type to run the program: `tollgate`, or `npm start --` in a checkout. */
  readonly program: string;
  readonly onSignal: (signal: 'SIGTERM' | 'SIGINT' | 'SIGHUP', handler: () => void) => void;
  /** Ends the process at once, whatever is under way. */
  readonly exitNow: (code: number) => void;
};

export type Command = {
  readonly name: string;
  readonly summary: string;
  /** Lines of help; the flags are listed after them. */
  readonly usage: readonly string[];
  /** Command lines that work as they stand, the last lines of the help. */
  readonly examples: readonly [string, ...string[]];
  /** Words that may come first, if they are few. */
  readonly actions?: readonly string[];
  readonly flags: Flags;
  /** Number of words that may follow the command's name. */
  readonly words: { readonly min: number; readonly max: number };
  readonly run: (args: Args, io: Io) => Promise<ExitCode>;
};
