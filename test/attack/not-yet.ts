// What the suites of answers ask for and the upstream transport on node:http does not do: its parser takes more than it
// should, its time-outs begin anew with every byte, it drops headers past one thousand, and a connection with half an
// answer behind a whole one stays in its pool. A transport that does it empties this list; nothing is ever added.

export const NOT_YET: ReadonlySet<string> = new Set([
  // Answers that are delivered although nobody can say what they mean.
  'HTTP/2.0',
  'HTTP/0.9',
  'RTSP',
  'a NUL in the reason',
  'a bare CR in the reason',
  'the coding gzip',
  'the coding identity',
  'gzip before chunked',
  'gzip before chunked, on two lines',
  'gzip after chunked',
  'chunked twice',
  'xchunked',
  'chunked with a parameter',
  'a coding on HTTP/1.0',
  'a coding in the trailers',
  'a folded trailer',
  'a 101 of HTTP/1.0',
  // The connection is used again, and the next client's answer is lost or read as the rest of this.
  'the beginning of an answer',
  'one letter',
  'strays in two packets',
  // Never ends.
  'an endless beginning',
  // Headers that are not there any more.
  'thousands of headers',
]);
