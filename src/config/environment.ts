// Fills in `${NAME}` and `${NAME:-default}` inside a scalar after parsing, so that a value can never become syntax.
// Messages name the variable, never its value.

export type Env = Readonly<Record<string, string | undefined>>;

type Interpolation = {
  readonly text: string;
  /** Whether anything was filled in. */
  readonly changed: boolean;
  /** Sentences; if there are any, `text` must not be used. */
  readonly problems: readonly string[];
};

const EXPRESSION = /\$\$\{|\$\{([^}]*)\}|\$\{/g;
const NAME_AND_DEFAULT = /^([A-Za-z_][A-Za-z0-9_]*)(?::-([^]*))?$/;

/**
 * Fills in variables. `$${` stands for the characters `${`; an empty variable counts as unset if a default is given, as
 * in a shell.
 */
export function interpolate(text: string, env: Env): Interpolation {
  const problems: string[] = [];
  const filled = text.replace(EXPRESSION, (expression: string, inside: string | undefined) => {
    if (expression === '$${') return '${';
    const [, name, fallback] = NAME_AND_DEFAULT.exec(inside ?? '') ?? [];
    if (name === undefined) {
      problems.push(
        'holds a ${ that names no variable; write ${NAME} or ${NAME:-default}, and $${ for the characters themselves',
      );
      return '';
    }
    const value = Object.hasOwn(env, name) ? env[name] : undefined;
    if (fallback !== undefined) return value || fallback;
    if (value === undefined)
      problems.push(`the environment variable ${name} is not set; set it, or write \${${name}:-default}`);
    return value ?? '';
  });
  return { text: filled, changed: filled !== text, problems };
}

// YAML reads `{`, `}` and `,` as its own inside [ ] and { }, so `[${NAME}]` would be a syntax error. So before parsing
// the brackets of an expression are replaced by characters that no document holds, one for one, so that positions stay
// true. In every scalar they are put back.
const BRACKETS = '{}[],';
const STAND_INS = '\uFDD0\uFDD1\uFDD2\uFDD3\uFDD4';

/** Shields expressions by stand-ins; undefined if `source` already holds one of these (Unicode noncharacters). */
export function shieldExpressions(source: string): string | undefined {
  if (/[\uFDD0-\uFDD4]/.test(source)) return undefined;
  return source.replace(/\$\{[A-Za-z_][A-Za-z0-9_]*(?::-[^}\r\n]*)?\}/g, (expression) =>
    expression.replace(/[{}[\],]/g, (character) => STAND_INS.charAt(BRACKETS.indexOf(character))),
  );
}

export function unshieldExpressions(text: string): string {
  return text.replace(/[\uFDD0-\uFDD4]/g, (character) => BRACKETS.charAt(STAND_INS.indexOf(character)));
}

const MARK = 'unset-variable:';

/** Stands for a secret that only a server beside this process has: long enough for any of them. */
export function markOf(name: string): string {
  return `${MARK}${name}:${'-'.repeat(32)}`;
}

/** The variable that `secret` stands for, if it is a mark. */
export function markedVariable(secret: string): string | undefined {
  return secret.startsWith(MARK) ? secret.slice(MARK.length).split(':', 1)[0] : undefined;
}
