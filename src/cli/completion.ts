// `tollgate completion bash|zsh|fish`: a script that completes commands, actions, flags and their values in a shell. It is made
// from the table of commands, so it knows each of them.
import { EXIT, type Command } from './command.ts';
import { bashScript } from './completion-bash.ts';
import { fishScript } from './completion-fish.ts';
import { completable } from './completion-model.ts';
import { zshScript } from './completion-zsh.ts';

const SCRIPTS = { bash: bashScript, zsh: zshScript, fish: fishScript } as const;
const SHELLS = Object.keys(SCRIPTS);

/** `commands`: the whole table, which holds this command too. */
export function completionOf(commands: () => readonly Command[]): Command {
  return {
    name: 'completion',
    summary: 'print a script that completes commands and flags in bash, zsh or fish',
    usage: [
      'tollgate completion bash|zsh|fish',
      '',
      'For good: in ~/.bashrc `source <(tollgate completion bash)`, in ~/.zshrc after compinit `source <(tollgate completion zsh)`,',
      'and for fish `tollgate completion fish > ~/.config/fish/completions/tollgate.fish`.',
    ],
    examples: ['source <(tollgate completion bash)', 'tollgate completion zsh', 'tollgate completion fish'],
    actions: SHELLS,
    flags: {},
    words: { min: 1, max: 1 },
    run: (args, io) => {
      const [shell = ''] = args.words;
      const script = Object.entries(SCRIPTS).find(([name]) => name === shell)?.[1];
      if (script === undefined) {
        io.err('completion: is followed by bash, zsh or fish');
        return Promise.resolve(EXIT.usage);
      }
      io.write(script(completable(commands())));
      return Promise.resolve(EXIT.fine);
    },
  };
}
