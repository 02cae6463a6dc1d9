// Finds the number at a path in the last event of a stream (text/event-stream) whose data has it, as the bytes come. Lines
// and fields are read as browsers read them (HTML, section 9.2.6). An event of more than `tailBytes` bytes is not read: what
// came before it is not the last word either, so the number is missing until a later event says it.
import { JsonNumber } from './json-number.ts';
import type { MeterReading } from './meter.ts';

/** Part of a line: its beginning, in which the name of the field is told, the value of `data`, or what is passed over. */
type LinePart = 'start' | 'space' | 'data' | 'other';

const [CR, LF, COLON, SPACE] = [0x0d, 0x0a, 0x3a, 0x20];
const MARK = [0xef, 0xbb, 0xbf];
/** The name `data`. */
const DATA = [0x64, 0x61, 0x74, 0x61];
const LINE_BREAK = Uint8Array.of(LF);

/** A class, because it is fed piece by piece. */
export class EventNumber {
  private readonly tailBytes: number;
  private part: LinePart = 'start';
  /** Number of characters of `data` that the line began with. */
  private named = 0;
  private isEmptyLine = true;
  /** Whether a carriage return ended the line before: a line feed belongs to it. */
  private afterReturn = false;
  /** Number of bytes of a byte order mark that were read, or all of them once the stream began. */
  private marked = 0;
  private readonly event: JsonNumber;
  /** Whether the open event has data. */
  private hasData = false;
  private eventBytes = 0;
  private last: MeterReading = { kind: 'absent' };

  constructor(path: readonly string[], tailBytes: number) {
    this.event = new JsonNumber(path);
    this.tailBytes = tailBytes;
  }

  push(bytes: Uint8Array, from = 0, to = bytes.length): void {
    for (let at = from; at < to; at++) {
      const byte = bytes[at] ?? 0;
      if (this.marked < MARK.length) {
        if (byte === MARK[this.marked]) {
          this.marked++;
          continue;
        }
        if (this.marked > 0) this.part = 'other';
        this.marked = MARK.length;
      }
      const wasReturn = this.afterReturn;
      this.afterReturn = byte === CR;
      if (byte === LF && wasReturn) continue;
      if (byte === CR || byte === LF) this.endLine();
      else at = this.takeOfLine(bytes, at, to);
    }
  }

  /** What the stream said; called when it ended whole. The blank line behind its last event may be left out. */
  end(): MeterReading {
    this.endLine();
    this.endEvent();
    return this.last;
  }

  /** Reads on in a line; returns the place of the last byte that it took. */
  private takeOfLine(bytes: Uint8Array, at: number, to: number): number {
    this.isEmptyLine = false;
    const byte = bytes[at] ?? 0;
    if (this.part === 'start') {
      if (this.named === DATA.length && byte === COLON) this.beginData('space');
      else if (byte === DATA[this.named]) this.named++;
      else this.part = 'other';
      return at;
    }
    if (this.part === 'space') {
      this.part = 'data';
      if (byte === SPACE) return at;
    }
    let end = at + 1;
    while (end < to && bytes[end] !== CR && bytes[end] !== LF) end++;
    if (this.part === 'data') this.feed(bytes, at, end);
    return end - 1;
  }

  /** Begins the value of a `data` field; those of one event are joined by line breaks. */
  private beginData(part: LinePart): void {
    this.part = part;
    if (this.hasData) return this.feed(LINE_BREAK, 0, 1);
    this.hasData = true;
    this.event.reset();
    this.eventBytes = 0;
  }

  private feed(bytes: Uint8Array, from: number, to: number): void {
    this.eventBytes += to - from;
    if (this.eventBytes <= this.tailBytes) this.event.push(bytes, from, to);
  }

  private endLine(): void {
    // A name alone is a field without a value.
    if (this.part === 'start' && this.named === DATA.length) this.beginData('data');
    if (this.isEmptyLine) this.endEvent();
    this.part = 'start';
    this.named = 0;
    this.isEmptyLine = true;
  }

  private endEvent(): void {
    const { event } = this;
    if (!this.hasData) return;
    this.hasData = false;
    if (this.eventBytes > this.tailBytes) {
      this.last = { kind: 'absent' };
      return;
    }
    const said = event.end();
    // Data that is no JSON document, or one without the path, says nothing.
    if (event.hasTarget) this.last = said;
  }
}
