// Finds the number at a path of members in a JSON document, as its bytes come, in constant memory. It follows the grammar
// of RFC 8259 and nothing else: what stands in a string is never taken for structure, and a document that does not end
// whole has no number. A name on the path that is there twice in its object has no value that two readers agree on.
import type { MeterReading } from './meter.ts';

type Mode =
  | 'value'
  | 'first element'
  | 'first name'
  | 'name'
  | 'colon'
  | 'after'
  | 'string'
  | 'escape'
  | 'hex'
  | 'number'
  | 'word'
  | 'broken';
/** Part of a number that was read last. */
type NumberPart = 'minus' | 'zero' | 'whole' | 'point' | 'fraction' | 'e' | 'sign' | 'exponent';

/** Deepest nesting that is read. */
export const DEEPEST = 512;
/** Longest number that is kept, in characters. */
const LONGEST_NUMBER = 128;
/** Bytes of one UTF-16 unit at most: an escape such as `\u0041`. */
const ESCAPE_BYTES = 6;
const MARK = [0xef, 0xbb, 0xbf];
const [QUOTE, BACKSLASH, MINUS, PLUS, POINT, COMMA, COLON] = [0x22, 0x5c, 0x2d, 0x2b, 0x2e, 0x2c, 0x3a];
const [OPEN_OBJECT, CLOSE_OBJECT, OPEN_ARRAY, CLOSE_ARRAY] = [0x7b, 0x7d, 0x5b, 0x5d];
/** The characters `"\/bfnrt`, which may stand behind a backslash. */
const ESCAPED = new Set([0x22, 0x5c, 0x2f, 0x62, 0x66, 0x6e, 0x72, 0x74]);
const WORDS: ReadonlyMap<number, string> = new Map(['true', 'false', 'null'].map((word) => [word.charCodeAt(0), word]));
const [IN_ARRAY, IN_OBJECT] = [0, 1];
const ABSENT: MeterReading = { kind: 'absent' };

/** A class, because it is fed piece by piece. */
export class JsonNumber {
  private readonly path: readonly string[];
  private readonly names: readonly Buffer[];
  private readonly stack = new Uint8Array(DEEPEST);
  private depth = 0;
  private mode: Mode = 'value';
  /** Number of bytes of a byte order mark that were read. */
  private marked = 0;
  /** Whether anything else was read. */
  private isBegun = false;
  /** Number of names of the path whose objects are open. */
  private matched = 0;
  /** Whether the name on the path was seen in the open object of each depth. */
  private readonly seen: boolean[] = [];
  /** Whether the value that comes belongs to a name on the path. */
  private hit = false;
  private twice = false;
  private found: MeterReading = ABSENT;
  /** Whether the string that is read is a name, and may be the one on the path. */
  private inName = false;
  private nameSize = -1;
  private readonly name: Buffer;
  private isEscaped = false;
  private hexLeft = 0;
  private part: NumberPart = 'zero';
  /** Digits of the number on the path; undefined: another number is read. */
  private digits: string | undefined;
  private word = '';
  private wordAt = 0;

  constructor(path: readonly string[]) {
    this.path = path;
    this.names = path.map((each) => Buffer.from(each));
    this.name = Buffer.alloc(ESCAPE_BYTES * Math.max(...path.map((each) => each.length)));
  }

  /** Begins another document. */
  reset(): void {
    this.mode = 'value';
    this.depth = 0;
    this.marked = 0;
    this.isBegun = false;
    this.matched = 0;
    this.hit = false;
    this.twice = false;
    this.found = ABSENT;
    this.digits = undefined;
    this.nameSize = -1;
    this.inName = false;
  }

  /** Reads `bytes` from `from` up to `to`. */
  push(bytes: Uint8Array, from = 0, to = bytes.length): void {
    for (let at = from; at < to; at++) {
      if (this.mode === 'broken') return;
      if (this.mode === 'string') at = this.skipText(bytes, at, to);
      if (at < to) this.take(bytes[at] ?? 0);
    }
  }

  /** Whether a value stood at the path so far. */
  get hasTarget(): boolean {
    return this.twice || this.found.kind !== 'absent';
  }

  /** What the document said; called when nothing more comes. */
  end(): MeterReading {
    if (this.mode === 'number') this.endNumber();
    if (this.mode !== 'after' || this.depth > 0) return { kind: 'malformed' };
    return this.twice ? { kind: 'twice' } : this.found;
  }

  /** Passes over the plain characters of a string that is not looked at. */
  private skipText(bytes: Uint8Array, from: number, to: number): number {
    if (this.nameSize >= 0) return from;
    let at = from;
    while (at < to && isPlain(bytes[at] ?? 0)) at++;
    return at;
  }

  private take(byte: number): void {
    switch (this.mode) {
      case 'value':
        if (isSpace(byte)) this.isBegun = true;
        else this.begin(byte);
        return;
      case 'first element':
        if (byte === CLOSE_ARRAY) this.close(IN_ARRAY);
        else if (!isSpace(byte)) this.begin(byte);
        return;
      case 'first name':
      case 'name':
        if (byte === QUOTE) this.beginName();
        else if (byte === CLOSE_OBJECT && this.mode === 'first name') this.close(IN_OBJECT);
        else if (!isSpace(byte)) this.mode = 'broken';
        return;
      case 'colon':
        if (byte === COLON) this.mode = 'value';
        else if (!isSpace(byte)) this.mode = 'broken';
        return;
      case 'after':
        return this.follow(byte);
      case 'string':
        return this.takeText(byte);
      case 'escape':
        this.keepOfName(byte);
        this.hexLeft = 4;
        this.mode = byte === 0x75 ? 'hex' : ESCAPED.has(byte) ? 'string' : 'broken';
        return;
      case 'hex':
        this.keepOfName(byte);
        if (!isHex(byte)) this.mode = 'broken';
        else if (--this.hexLeft === 0) this.mode = 'string';
        return;
      case 'number':
        return this.takeDigit(byte);
      case 'word':
        if (byte !== this.word.charCodeAt(this.wordAt++)) this.mode = 'broken';
        else if (this.wordAt === this.word.length) this.mode = 'after';
        return;
      case 'broken':
        return;
      default:
        return this.mode satisfies never;
    }
  }

  /** Begins a value. */
  private begin(byte: number): void {
    if (!this.isBegun && byte === MARK[this.marked]) {
      this.marked++;
      return;
    }
    this.isBegun = true;
    if (this.marked % MARK.length !== 0) {
      this.mode = 'broken';
      return;
    }
    const isTarget = this.hit && this.matched + 1 === this.path.length;
    const isStep = this.hit && !isTarget;
    this.hit = false;
    if (byte === OPEN_OBJECT || byte === OPEN_ARRAY) {
      if (isTarget) this.found = { kind: 'malformed' };
      return this.open(byte === OPEN_OBJECT ? IN_OBJECT : IN_ARRAY, isStep);
    }
    if (byte === QUOTE) {
      if (isTarget) this.found = { kind: 'malformed' };
      this.nameSize = -1;
      this.inName = false;
      this.mode = 'string';
    } else if (byte === MINUS || isDigit(byte)) {
      this.part = byte === MINUS ? 'minus' : byte === 0x30 ? 'zero' : 'whole';
      this.digits = isTarget ? String.fromCharCode(byte) : undefined;
      this.mode = 'number';
    } else {
      const word = WORDS.get(byte);
      if (isTarget && word !== 'null') this.found = { kind: 'malformed' };
      this.word = word ?? '';
      this.wordAt = 1;
      this.mode = word === undefined ? 'broken' : 'word';
    }
  }

  private open(kind: number, isStep: boolean): void {
    if (this.depth === DEEPEST) {
      this.mode = 'broken';
      return;
    }
    this.stack[this.depth++] = kind;
    if (isStep && kind === IN_OBJECT) this.matched++;
    if (this.isOnPath) this.seen[this.matched] = false;
    this.mode = kind === IN_OBJECT ? 'first name' : 'first element';
  }

  private close(kind: number): void {
    if (this.depth === 0 || this.stack[this.depth - 1] !== kind) {
      this.mode = 'broken';
      return;
    }
    if (this.isOnPath && this.matched > 0) this.matched--;
    this.depth--;
    this.mode = 'after';
  }

  /** Whether the innermost container is the object that holds the next name of the path. */
  private get isOnPath(): boolean {
    return this.depth === this.matched + 1 && this.stack[this.matched] === IN_OBJECT;
  }

  private follow(byte: number): void {
    if (isSpace(byte)) return;
    if (byte === CLOSE_OBJECT) return this.close(IN_OBJECT);
    if (byte === CLOSE_ARRAY) return this.close(IN_ARRAY);
    const isNext = byte === COMMA && this.depth > 0;
    this.mode = !isNext ? 'broken' : this.stack[this.depth - 1] === IN_OBJECT ? 'name' : 'value';
  }

  private beginName(): void {
    this.inName = true;
    this.nameSize = this.isOnPath ? 0 : -1;
    this.isEscaped = false;
    this.mode = 'string';
  }

  private takeText(byte: number): void {
    if (byte === QUOTE) {
      if (this.inName) this.endName();
      else this.mode = 'after';
    } else if (byte < 0x20) {
      this.mode = 'broken';
    } else {
      this.keepOfName(byte);
      if (byte !== BACKSLASH) return;
      this.isEscaped = true;
      this.mode = 'escape';
    }
  }

  /** Keeps a byte of a name that may be the one on the path; one that is too long for it is not kept. */
  private keepOfName(byte: number): void {
    if (this.nameSize < 0) return;
    if (this.nameSize === this.name.length) this.nameSize = -1;
    else this.name[this.nameSize++] = byte;
  }

  private endName(): void {
    this.mode = 'colon';
    this.inName = false;
    this.hit = this.nameSize >= 0 && this.isNamed(this.matched);
    this.nameSize = -1;
    if (!this.hit) return;
    if (this.seen[this.matched] === true) this.twice = true;
    this.seen[this.matched] = true;
  }

  /** Whether the name that was read is the one at a place of the path. Most are written as they are. */
  private isNamed(place: number): boolean {
    const { name, nameSize, names, path } = this;
    const size = names[place]?.length ?? 0;
    if (!this.isEscaped) return nameSize === size && names[place]?.compare(name, 0, size) === 0;
    return JSON.parse(`"${name.toString('utf8', 0, nameSize)}"`) === path[place];
  }

  private takeDigit(byte: number): void {
    const next = nextPart(this.part, byte);
    if (next === undefined) {
      this.endNumber();
      // A number ends with what follows it.
      if (this.mode === 'after') this.follow(byte);
      return;
    }
    this.part = next;
    if (this.digits !== undefined && this.digits.length <= LONGEST_NUMBER) this.digits += String.fromCharCode(byte);
  }

  private endNumber(): void {
    const isWhole =
      this.part === 'zero' || this.part === 'whole' || this.part === 'fraction' || this.part === 'exponent';
    this.mode = isWhole ? 'after' : 'broken';
    if (this.digits === undefined) return;
    const isKept = this.digits.length <= LONGEST_NUMBER;
    this.found = isKept ? { kind: 'read', text: this.digits } : { kind: 'malformed' };
    this.digits = undefined;
  }
}

/** The part of a number that `byte` belongs to behind `part`; undefined: it does not go on the number. */
function nextPart(part: NumberPart, byte: number): NumberPart | undefined {
  const isE = byte === 0x65 || byte === 0x45;
  switch (part) {
    case 'minus':
      return byte === 0x30 ? 'zero' : isDigit(byte) ? 'whole' : undefined;
    case 'zero':
      return byte === POINT ? 'point' : isE ? 'e' : undefined;
    case 'whole':
      return isDigit(byte) ? 'whole' : byte === POINT ? 'point' : isE ? 'e' : undefined;
    case 'point':
      return isDigit(byte) ? 'fraction' : undefined;
    case 'fraction':
      return isDigit(byte) ? 'fraction' : isE ? 'e' : undefined;
    case 'e':
      return isDigit(byte) ? 'exponent' : byte === MINUS || byte === PLUS ? 'sign' : undefined;
    case 'sign':
    case 'exponent':
      return isDigit(byte) ? 'exponent' : undefined;
    default:
      return part satisfies never;
  }
}

function isPlain(byte: number): boolean {
  return byte >= 0x20 && byte !== QUOTE && byte !== BACKSLASH;
}

function isSpace(byte: number): boolean {
  return byte === 0x20 || byte === 0x0a || byte === 0x0d || byte === 0x09;
}

function isDigit(byte: number): boolean {
  return byte >= 0x30 && byte <= 0x39;
}

function isHex(byte: number): boolean {
  const lower = byte | 0x20;
  return isDigit(byte) || (lower >= 0x61 && lower <= 0x66);
}
