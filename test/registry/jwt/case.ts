// What one case of a hostile (or a good) token is. A case says what it sends and exactly what must come back.
import type { Setting, SettingName } from './settings.ts';

/**
 * taken: 200. refused: 401 `credentials_invalid`. unread: 401 `credentials_missing`, for what is no bearer credential.
 */
export type Verdict = 'taken' | 'refused' | 'unread';

export type TokenCase = {
  readonly name: string;
  readonly token: (setting: Setting) => string;
  readonly verdict: Verdict | ((setting: Setting) => Verdict);
  /** Where it only makes sense under some settings. */
  readonly only?: readonly SettingName[];
};

export function refused(name: string, token: TokenCase['token'], only?: readonly SettingName[]): TokenCase {
  return { name, token, verdict: 'refused', ...(only && { only }) };
}

export function taken(name: string, token: TokenCase['token'], only?: readonly SettingName[]): TokenCase {
  return { name, token, verdict: 'taken', ...(only && { only }) };
}
