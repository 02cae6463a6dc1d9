// Writes the findings of a probe as text for a person. The table comes first and the lines to paste come last, because
// the end is what stands above the prompt. A sentence here never says more than was asked: canaries that do not get
// through are evidence for the paths that were named.
import type { PathFolding, ProfileName } from '../../domain/routing/profile.ts';
import { counts, type Deed, type Doubt } from './answers.ts';
import type { PathReport } from './path.ts';
import { FOLDING_RULES, type Judgement, type ProfileGroup } from './profiles.ts';
import { recommendationLines, some } from './recommendation.ts';
import { pathsOf, patternFor, treatmentUnder, type Treatment } from './tollgate.ts';

export type ProbeReport = {
  readonly upstream: string;
  readonly host: string;
  readonly reports: readonly PathReport[];
  readonly judgement: Judgement;
  /** Further methods that were tried. */
  readonly tried: readonly string[];
  /** The profile that was asked about. */
  readonly asked: ProfileName | undefined;
  /** Every spelling is to be listed, not only those that reach the path. */
  readonly all: boolean;
};

/** Names of folding rules in the report; a rule that is not listed has its name in the code. */
const RULES: ReadonlyMap<string, string> = new Map([
  ['letterCase', 'letter case'],
  ['compatibility', 'look-alike letters'],
  ['matrix', ';parameters'],
  ['suffix', '.suffix'],
  ['trim', 'dots and spaces around a segment'],
  ['empty', 'empty segments'],
  ['form', '& and + as in a query'],
  ['script', 'paths behind a script'],
  ['pageData', 'data of a page'],
  ['index', 'index of a folder'],
  ['dots', 'dots for slashes'],
  ['dashes', 'dashes for underscores'],
  ['views', '@@ before a name'],
  ['lists', 'lists of names'],
]);

function nameOf(rule: keyof PathFolding): string {
  return RULES.get(rule) ?? rule;
}

const DOUBTS: Readonly<Record<Doubt, string>> = {
  silent: 'it did not answer every time',
  redirects: 'it answers with a redirect; name the path that it leads to',
  failing: 'it answers with an error of its own or a limit on requests; try again, with --parallel 1 or --header',
  unsteady: 'its answers changed while it was asked; try again, with --parallel 1, or name a steadier path',
  absent: 'it is answered like a path that does not exist; name one that your API answers to GET',
  catch_all:
    'every path is answered like it, so no spelling can be told from another. If it wants a credential first, send one with --header',
};

export function textReport(probed: ProbeReport): string[] {
  const { reports, judgement } = probed;
  const lines = reports.flatMap((report) => [...describePath(report, probed), '']);
  const told = reports.filter((report) => report.told.ok);
  if (told.length === 0) {
    return [
      ...lines,
      'Cannot tell: use unknown, which reads a path in every way that any framework does.',
      '',
      ...recommendationLines(reports, judgement, probed.tried),
    ];
  }
  return [
    ...lines,
    ...folding(judgement),
    ...differences(probed),
    'Safe profiles, the most permissive first:',
    ...judgement.safe.map(describeGroup),
    ...(judgement.safe.length > 0 ? [] : ['  none']),
    ...unproven(judgement),
    ...unsafe(judgement),
    ...(judgement.recommended === undefined ? uncovered(judgement) : []),
    ...recommendationLines(reports, judgement, probed.tried),
    ...askedProfile(probed),
  ];
}

function askedProfile({ asked, judgement }: ProbeReport): string[] {
  if (asked === undefined) return [];
  const proven = judgement.safe.some(({ names }) => names.includes(asked));
  const judged = isSafe(asked, judgement) ? `safe${proven ? '' : ' as far as was asked'}` : 'NOT SAFE';
  return ['', `${asked} is ${judged} for this upstream.`];
}

/** Whether no spelling got around `profile`, which its operator named and is not only guessed. */
export function isSafe(profile: ProfileName, { safe, unproven }: Judgement): boolean {
  return [...safe, ...unproven].some(({ names }) => names.includes(profile));
}

type Row = { readonly kind: string; readonly cells: readonly string[]; readonly telling: boolean };

function describePath(report: PathReport, { upstream, host, judgement, all }: ProbeReport): string[] {
  const { known, first, unknownStatus, told } = report;
  const title = `GET ${known.path}${known.query} at ${upstream}`;
  if (first.kind === 'none') return [`${title}: ${first.detail}.`];
  const head = `${title}: ${first.status}; paths that cannot exist: ${unknownStatus ?? 'no answer'}.`;
  if (!told.ok) return [head, `  Nothing can be told from it: ${DOUBTS[told.doubt]}.`];
  const profile = judgement.recommended?.profile ?? 'unknown';
  const treat = treatmentUnder(pathsOf(profile), known, host);
  const rows: Row[] = told.asked.map(({ kind, target, deed }) => {
    const treatment = treat(target);
    const free = treatment.kind === 'forwards' && counts(deed);
    return {
      kind,
      cells: [target, describeDeed(deed), free ? 'FREE: NOT SAFE' : describeTreatment(treatment)],
      telling: counts(deed) || deed.kind === 'redirected',
    };
  });
  rows.push(
    ...told.methods.map(({ method, status, alike }) => ({
      kind: 'methods, on the path itself',
      cells: [
        method,
        alike ? `${status ?? 'no answer'}, like GET` : String(status),
        method === 'HEAD' ? 'costs what GET costs' : 'an undeclared method',
      ],
      telling: true,
    })),
  );
  return [
    `${head} ${told.asked.length} other spellings asked:`,
    ...(known.parameter
      ? [`Its last segment is a parameter, because any other is answered too: protected as ${patternFor(known)}.`]
      : []),
    '',
    ...table(rows, ['spelling', 'your API', `Tollgate as ${profile}`], all),
  ];
}

/** Kinds as headings with their rows; rows that tell nothing are counted, unless `all` are wanted. */
function table(rows: readonly Row[], titles: readonly string[], all: boolean): string[] {
  const shown = rows.filter(({ telling }) => all || telling);
  const cells = [titles, ...shown.map((row) => row.cells)];
  const widths = titles.map((_, column) => Math.max(...cells.map((line) => line[column]?.length ?? 0)));
  const write = (line: readonly string[]): string =>
    `    ${line.map((cell, column) => cell.padEnd(widths[column] ?? 0)).join('  ')}`.trimEnd();
  return [
    write(titles),
    ...[...Map.groupBy(rows, ({ kind }) => kind)].flatMap(([kind, group]) => {
      const listed = group.filter((row) => shown.includes(row));
      const silent = group.length - listed.length;
      const rest = silent === 0 ? '' : `: ${listed.length === 0 ? 'none' : 'no other'} of ${group.length} reaches it`;
      return [`  ${kind}${rest}`, ...listed.map((row) => write(row.cells))];
    }),
  ];
}

function describeDeed(deed: Deed): string {
  switch (deed.kind) {
    case 'reached':
      return 'REACHED';
    case 'unclear':
      return `REACHED? ${deed.why}`;
    case 'redirected':
      return `redirects to ${deed.location.length > 40 ? `${deed.location.slice(0, 40)}...` : deed.location}`;
    case 'not_found':
      return deed.status < 300 ? `another path (${deed.status})` : `no such path (${deed.status})`;
    case 'refused':
      return `refused (${deed.status})`;
    default:
      return deed satisfies never;
  }
}

function describeTreatment(treatment: Treatment): string {
  switch (treatment.kind) {
    case 'asks':
      return 'asks for payment';
    case 'refuses':
      return 'refuses (400)';
    case 'forwards':
      return 'another path, free';
    default:
      return treatment satisfies never;
  }
}

function folding({ needs, unasked }: Judgement): string[] {
  const width = Math.max(...FOLDING_RULES.map((rule) => nameOf(rule).length));
  return [
    'Folding that this upstream needs, beyond slashes and escapes, which are always folded:',
    ...needs.map(({ rule, because }) => {
      const example = because[0];
      const no = unasked.includes(rule) ? 'not asked: needs a --path that ends in an id, such as /v1/reports/q3' : 'no';
      const why = example === undefined ? no : `yes: ${example.target} reaches ${example.path}`;
      return `  ${nameOf(rule).padEnd(width)}  ${why}`;
    }),
    '',
  ];
}

/** Lists spellings that upstream and Tollgate read differently, none of them a way around. */
function differences({ reports, judgement, host }: ProbeReport): string[] {
  const corrected: string[] = [];
  const costly: string[] = [];
  const refused: string[] = [];
  const redirected: string[] = [];
  for (const { known, told } of reports) {
    if (!told.ok) continue;
    const treat = treatmentUnder(pathsOf(judgement.recommended?.profile ?? 'unknown'), known, host);
    for (const { target, deed } of told.asked) {
      const treatment = treat(target);
      if (deed.kind === 'redirected') redirected.push(target);
      else if (treatment.kind === 'refuses' && counts(deed)) refused.push(target);
      else if (treatment.kind === 'asks' && !counts(deed))
        (treatment.target === known.path + known.query ? corrected : costly).push(target);
    }
  }
  const rows: readonly (readonly [string, readonly string[]])[] = [
    ['Tollgate corrects the spelling before your API sees it, and charges for it', corrected],
    ['Tollgate asks for payment, and your API has another path or nothing there', costly],
    ['Tollgate refuses with 400, because routers disagree about them, and your API answers', refused],
    ['your API redirects, and the client comes back through Tollgate', redirected],
  ];
  const lines = rows.flatMap(([what, targets]) =>
    targets.length === 0 ? [] : [`  ${what} (${targets.length}): ${some(targets)}`],
  );
  return lines.length === 0 ? [] : ['What differs, none of it a way around:', ...lines, ''];
}

function describeGroup({ names, folds }: ProfileGroup): string {
  return `  ${names.join(' ')}: ${folds.length === 0 ? 'slashes and escapes only' : folds.map(nameOf).join(', ')}`;
}

function unproven({ unproven: groups }: Judgement): string[] {
  if (groups.length === 0) return [];
  return [
    'Safe too, unless a parameter may be empty in your router; a --path that ends in an id (/v1/reports/q3) tells:',
    ...groups.map(describeGroup),
  ];
}

function unsafe({ unsafe: groups }: Judgement): string[] {
  if (groups.length === 0) return [''];
  return [
    'Not safe:',
    ...groups.map(
      ({ names, leaks }) => `  ${names.join(' ')}: free would be ${some(leaks.map(({ target }) => target))}`,
    ),
    '',
  ];
}

function uncovered({ unsafe: groups }: Judgement): string[] {
  const leaks = groups.find(({ names }) => names.includes('unknown'))?.leaks ?? [];
  return [
    `Not even unknown covers ${some(leaks.map(({ target }) => target))}.`,
    'Protect what stands above the path with a wildcard (/v1/* instead of /v1/export), or make the API refuse these spellings.',
  ];
}
