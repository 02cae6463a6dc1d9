// The completion for zsh. It may be sourced, or lie as `_tollgate` in a folder of fpath.
import type { CompletableCommand, CompletableFlag } from './completion-model.ts';

export function zshScript(commands: readonly CompletableCommand[]): string {
  return `#compdef tollgate
# Completion of tollgate in zsh: source <(tollgate completion zsh)
_tollgate() {
  local -a commands
  commands=(
${commands.map(({ name, summary }) => `    '${name}:${summary}'\n`).join('')}  )
  if ((CURRENT == 2)) && [[ $words[2] != -* ]]; then
    _describe -t commands command commands
    return
  fi
  local command=serve
  if [[ $words[2] != -* ]]; then
    command=$words[2]
    shift words
    ((CURRENT--))
  fi
  case $command in
${commands.map(commandCase).join('')}  esac
}
if [[ $funcstack[1] == _tollgate ]]; then _tollgate "$@"; else compdef _tollgate tollgate; fi
`;
}

function commandCase({ name, actions, flags }: CompletableCommand): string {
  // A message in place of the empty list would keep zsh from putting in a flag.
  const words = actions.length === 0 ? [] : [`'1:word:(${actions.join(' ')})'`];
  const specs = [...words, ...flags.map(flagSpec)];
  return `    ${name})
      _arguments ${specs.join(' \\\n        ')} '*:word:()'
      ;;
`;
}

function flagSpec({ name, short, help, isRepeatable, value }: CompletableFlag): string {
  const told = `[${help.replaceAll(/[[\]:]/g, '\\$&')}]`;
  const taken = value === undefined ? '' : `:${value.name.replaceAll(/[':]/g, '')}:${actionOf(value)}`;
  if (short === undefined) return `'${isRepeatable ? '*' : ''}--${name}${told}${taken}'`;
  return `'(-${short} --${name})'{-${short},--${name}}'${told}${taken}'`;
}

function actionOf({ kind, choices }: NonNullable<CompletableFlag['value']>): string {
  if (choices.length > 0) return `(${choices.join(' ')})`;
  return kind === 'file' ? '_files' : kind === 'folder' ? '_files -/' : ' ';
}
