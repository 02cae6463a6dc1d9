// The completion for bash, from version 3.2 on, which macOS has.
import type { CompletableCommand, CompletableFlag } from './completion-model.ts';

export function bashScript(commands: readonly CompletableCommand[]): string {
  const serve = commands.find(({ name }) => name === 'serve');
  const names = commands.map(({ name }) => name).join(' ');
  return `# Completion of tollgate in bash: source <(tollgate completion bash)
_tollgate() {
  local current=\${COMP_WORDS[COMP_CWORD]} previous=\${COMP_WORDS[COMP_CWORD - 1]} command=\${COMP_WORDS[1]}
  local first='' flags='' valued='' at=2 said=0
  COMPREPLY=()
  # Bash breaks --flag=value into three words.
  if [[ $current == '=' ]]; then current=''; elif [[ $previous == '=' ]]; then previous=\${COMP_WORDS[COMP_CWORD - 2]}; fi
  if ((COMP_CWORD == 1)); then
    if [[ $current == -* ]]; then first='${flagWords(serve?.flags ?? [])} --version'; else first='${names}'; fi
    COMPREPLY=($(compgen -W "$first" -- "$current"))
    return
  fi
  if [[ $command == -* ]]; then
    command=serve
    at=1
  fi
  case $command in
${commands.map(commandCase).join('')}    *) return ;;
  esac
  if [[ $current == -* ]]; then
    COMPREPLY=($(compgen -W "$flags" -- "$current"))
    return
  fi
  while ((at < COMP_CWORD)); do
    if [[ \${COMP_WORDS[at]} != -* ]]; then
      said=$((said + 1))
    elif [[ $valued == *" \${COMP_WORDS[at]} "* ]]; then
      at=$((at + 1))
      if [[ \${COMP_WORDS[at]} == '=' ]]; then at=$((at + 1)); fi
    fi
    at=$((at + 1))
  done
  if ((said == 0)) && [[ -n $first ]]; then COMPREPLY=($(compgen -W "$first" -- "$current")); fi
}
complete -F _tollgate tollgate
`;
}

function commandCase({ name, actions, flags }: CompletableCommand): string {
  const valued = flags.filter(({ value }) => value !== undefined);
  const values = valued.map(valueCase).join('');
  return `    ${name})
      first='${actions.join(' ')}'
      flags='${flagWords(flags)}'
      valued=' ${flagWords(valued)} '
${values === '' ? '' : `      case $previous in\n${values}      esac\n`}      ;;
`;
}

function valueCase({ name, short, value }: CompletableFlag): string {
  const spellings = [`--${name}`, ...(short === undefined ? [] : [`-${short}`])].join(' | ');
  const { kind, choices } = value ?? { kind: 'other', choices: [] };
  if (kind === 'other' && choices.length === 0) return `        ${spellings}) return ;;\n`;
  if (kind === 'other')
    return `        ${spellings})
          COMPREPLY=($(compgen -W '${choices.join(' ')}' -- "$current"))
          return
          ;;
`;
  // Names may hold spaces.
  return `        ${spellings})
          local IFS=$'\\n'
          COMPREPLY=($(compgen ${kind === 'file' ? '-f' : '-d'} -- "$current"))
          compopt -o filenames 2>/dev/null
          return
          ;;
`;
}

function flagWords(flags: readonly CompletableFlag[]): string {
  return flags.flatMap(({ name, short }) => [`--${name}`, ...(short === undefined ? [] : [`-${short}`])]).join(' ');
}
