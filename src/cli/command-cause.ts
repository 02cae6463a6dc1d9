// The user of this machine who runs a command, as the audit log names him.
import { userInfo } from 'node:os';
import type { AuditCause } from '../domain/audit.ts';

export function nameOfUser(): string {
  try {
    return userInfo().username || 'operator';
  } catch {
    return 'operator';
  }
}

export function commandCause(): AuditCause {
  return { actor: nameOfUser(), via: 'command_line', requestId: null };
}
