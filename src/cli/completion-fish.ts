// The completion for fish, a line for each thing that can be completed.
import type { CompletableCommand, CompletableFlag } from './completion-model.ts';

export function fishScript(commands: readonly CompletableCommand[]): string {
  const lines = commands.flatMap((command) => [
    `complete -c tollgate -n __tollgate_no_command -a ${command.name} -d '${command.summary}'`,
    ...linesOf(command, `'__tollgate_command ${command.name}'`),
  ]);
  return `# Completion of tollgate in fish: tollgate completion fish > ~/.config/fish/completions/tollgate.fish
function __tollgate_no_command
  test (count (commandline -opc)) -eq 1
end
# The first word is the command; flags alone are serve.
function __tollgate_command
  set -l said (commandline -opc)
  set -l command $said[2]
  if test (count $said) -eq 1; or string match -q -- '-*' $command
    set command serve
  end
  test "$command" = $argv[1]
end
# Whether no word stands behind the command yet, but flags and their values.
function __tollgate_first_word
  __tollgate_command $argv[1]; or return 1
  set -l said (commandline -opc)
  set -l is_value no
  for word in $said[3..-1]
    if test $is_value = yes
      set is_value no
    else if contains -- $word $argv[2..-1]
      set is_value yes
    else if not string match -q -- '-*' $word
      return 1
    end
  end
end
complete -c tollgate -f
${lines.join('\n')}
`;
}

function linesOf({ name, actions, flags }: CompletableCommand, condition: string): string[] {
  const valued = flags.filter(({ value }) => value !== undefined).flatMap(spellingsOf);
  const isFirst = `'${['__tollgate_first_word', name, ...valued].join(' ')}'`;
  const first = actions.map((each) => `complete -c tollgate -n ${isFirst} -a ${each}`);
  return [...first, ...flags.map((flag) => `complete -c tollgate -n ${condition} ${flagOf(flag)}`)];
}

function spellingsOf({ name, short }: CompletableFlag): string[] {
  return [`--${name}`, ...(short === undefined ? [] : [`-${short}`])];
}

function flagOf({ name, short, help, value }: CompletableFlag): string {
  const spelled = `-l ${name}${short === undefined ? '' : ` -s ${short}`} -d '${help}'`;
  if (value === undefined) return spelled;
  if (value.choices.length > 0) return `${spelled} -x -a '${value.choices.join(' ')}'`;
  if (value.kind === 'folder') return `${spelled} -x -a '(__fish_complete_directories)'`;
  return `${spelled} ${value.kind === 'file' ? '-r -F' : '-x'}`;
}
