// Ids and addresses in a narrow place: their beginning and end, which is where people tell two apart.

export function shortened(text: string, start = 8, end = 4): string {
  return text.length <= start + end + 1 ? text : `${text.slice(0, start)}…${text.slice(-end)}`;
}
