// The names that a client must not speak in, and how a client could try: more than forty spellings of each, as whole header
// lines. Data and pure functions.

/** What the value of a forged header holds; ours never does. */
export const FORGED = 'for ged!';

/** Set by Tollgate on every request. */
export const ALWAYS_OURS = ['X-Forwarded-For', 'X-Forwarded-Proto', 'X-Forwarded-Host', 'X-Request-Id'];

/** Set by Tollgate on a paid request alone. */
export const PAID_OURS = [
  'Tollgate-Charge-Id',
  'Tollgate-Route-Id',
  'Tollgate-Payer',
  'Tollgate-Network',
  'Tollgate-Amount',
  'Tollgate-Currency',
  'Tollgate-Customer-Id',
];

const NEVER_CROSSES = [
  ...['Tollgate-Reason', 'Tollgate-Anything-Else', 'Tollgate'],
  ...['X-Payment', 'X-Payment-Response', 'PAYMENT-SIGNATURE', 'PAYMENT-RESPONSE', 'PAYMENT-REQUIRED', 'Payment-Other'],
  ...['X-Forwarded-Port', 'X-Forwarded-User', 'X-Forwarded-Uri', 'X-Forwarded-Prefix', 'X-Forwarded-Method'],
  ...[
    'X-Real-IP',
    'Forwarded',
    'X-Original-URL',
    'X-Rewrite-URL',
    'X-HTTP-Method-Override',
    'traceparent',
    'tracestate',
  ],
  ...['Keep-Alive', 'Proxy-Connection', 'Proxy-Authorization', 'Proxy-Authenticate', 'TE', 'Trailer', 'HTTP2-Settings'],
];

/** Names that frame or route the request: their true spelling is a wire case, the false ones are here. */
const FRAMING = ['Host', 'Content-Length', 'Transfer-Encoding', 'Connection', 'Upgrade', 'Expect'];

export const RESERVED: readonly string[] = [...PAID_OURS, ...ALWAYS_OURS, ...NEVER_CROSSES];
export const RESERVED_AND_FRAMING: readonly string[] = [...RESERVED, ...FRAMING];

/** How CGI, WSGI, Rack and PHP tell header names apart: not at all, where only such characters differ. */
export function folded(name: string): string {
  return name.toLowerCase().replace(/[^a-z0-9]/g, '-');
}

const NAMES = new Set(RESERVED_AND_FRAMING.map(folded));

/** Whether a header of this name is ours alone to send, in any spelling. */
export function isReserved(name: string): boolean {
  const plain = folded(name);
  return NAMES.has(plain) || /^(?:tollgate|payment-|x-forwarded-)/.test(plain);
}

const OTHERS = "_.!#$%&'*+^`|~".split('');

/** Spellings that a parser takes: other case, other characters for the dash, more of them. */
export function spellings(name: string): readonly string[] {
  const lower = name.toLowerCase();
  const cased = [
    name,
    lower,
    name.toUpperCase(),
    Array.from(lower)
      .map((letter, i) => (i % 2 === 0 ? letter.toUpperCase() : letter))
      .join(''),
    Array.from(lower)
      .map((letter, i) => (i % 2 === 1 ? letter.toUpperCase() : letter))
      .join(''),
    lower.slice(0, -1) + lower.slice(-1).toUpperCase(),
  ];
  const odd = OTHERS.flatMap((other) => [
    name.replaceAll('-', other),
    lower.replace('-', other),
    lower.replace(/-(?=[^-]*$)/, other).toUpperCase(),
  ]);
  // A name without a dash has its odd characters around it.
  const around = name.includes('-') ? [] : OTHERS.flatMap((other) => [`${name}${other}`, `${other}${lower}`]);
  return [...new Set([...cased, ...odd, ...around])];
}

/** The spellings of a framing name that are not the name itself. */
export function falseSpellings(name: string): readonly string[] {
  return spellings(name).filter((spelling) => spelling.toLowerCase() !== name.toLowerCase());
}

/** Header lines that some parser reads as `name`, and that have to be refused. */
export function malformedLines(name: string): readonly string[] {
  return [
    `${name} : ${FORGED}`,
    `${name}\t: ${FORGED}`,
    `${name}\xa0: ${FORGED}`,
    `${name}\0: ${FORGED}`,
    `${name}\x0b: ${FORGED}`,
    `${name}\x7f: ${FORGED}`,
    `${name}\xad: ${FORGED}`,
    `${name}\xfc: ${FORGED}`,
    `\xef\xbb\xbf${name}: ${FORGED}`,
    ` ${name}: ${FORGED}`,
    `\t${name}: ${FORGED}`,
    `"${name}": ${FORGED}`,
    `(${name}): ${FORGED}`,
    `[${name}]: ${FORGED}`,
    `${name},X: ${FORGED}`,
    `${name}/: ${FORGED}`,
    `${name};: ${FORGED}`,
    `X-A: b\r\n ${name}: ${FORGED}`,
    `X-A: b\r\n\t${name}: ${FORGED}`,
    `X-A: b\n${name}: ${FORGED}`,
    `X-A: b\r${name}: ${FORGED}`,
    `X-A: b\0\r\n${name}: ${FORGED}`,
    `${name.replace('-', ' ')} ${FORGED}`,
    `${name.slice(0, 2)}\xc2\xad${name.slice(2)}: ${FORGED}`,
    `${name.slice(0, 2)}\xe2\x80\x90${name.slice(2)}: ${FORGED}`,
  ];
}
