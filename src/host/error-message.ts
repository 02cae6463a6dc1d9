// The message of whatever was thrown, as a sentence for a log line or an operator. What was thrown need not be an
// Error.

export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
