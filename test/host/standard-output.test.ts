// Standard output that several processes share: whatever its reader does, no line stands inside another one.
import { spawn } from 'node:child_process';
import path from 'node:path';
import { describe, expect, test } from 'vitest';
import { openStandardOutput } from '../../src/host/standard-output.ts';

const WRITER = path.join(import.meta.dirname, '../support/log-writer.ts');
const PROCESSES = 4;
const LINES = 1500;

test('attack: several processes fill one pipe with lines of every length: each line is whole, and in its order', async () => {
  const writers = Array.from({ length: PROCESSES }, (_, at) => `"$0" "$1" ${at + 1} ${LINES} &`).join(' ');
  const shell = spawn('sh', ['-c', `{ ${writers} wait; } | cat`, process.execPath, WRITER], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  let text = '';
  for await (const chunk of shell.stdout.setEncoding('utf8')) text += String(chunk);
  const next = new Map<number, number>();
  for (const line of text.trimEnd().split('\n')) {
    const { worker, at } = JSON.parse(line) as { worker: number; at: number };
    expect([worker, at]).toEqual([worker, next.get(worker) ?? 0]);
    next.set(worker, at + 1);
  }
  expect([...next.values()]).toEqual(Array.from({ length: PROCESSES }, () => LINES));
}, 60_000);

describe('a pipe', () => {
  /** Takes as many bytes as `room` says; then it is full. */
  function pipe(room: number) {
    const turns: (() => void)[] = [];
    const state = { room, text: '', gone: false, still: false, slept: 0, turns, writes: [] as number[] };
    const output = openStandardOutput({
      writeBytes: (bytes) => {
        if (state.gone) throw Object.assign(new Error('gone'), { code: 'EPIPE' });
        const taken = bytes.subarray(0, state.room);
        if (taken.length === 0) throw Object.assign(new Error('full'), { code: 'EAGAIN' });
        state.room -= taken.length;
        state.writes.push(taken.length);
        state.text += Buffer.from(taken).toString();
        return taken.length;
      },
      later: (run) => void turns.push(run),
      sleep: () => {
        state.slept++;
        if (!state.still && state.slept % 2 === 0) state.room += 2;
      },
    });
    return { output, state, turn: () => turns.splice(0).forEach((run) => run()) };
  }

  test('behaviour: a text that does not fit into a pipe waits, goes on where it stopped, and keeps its order', () => {
    const { output, state, turn } = pipe(3);
    output.write('ab');
    output.write('');
    output.write('cde');
    output.write('f');
    expect([state.text, state.turns.length]).toEqual(['abc', 1]);
    turn();
    expect([state.text, state.turns.length]).toEqual(['abc', 1]);
    state.room = 100;
    output.write('g');
    expect(state.text).toBe('abc');
    turn();
    expect([state.text, state.turns.length]).toEqual(['abcdefg', 0]);
  });

  test('behaviour: texts that wait for a slow reader leave in few writes, each of whole texts', () => {
    const { output, state, turn } = pipe(0);
    const texts = Array.from({ length: 50_000 }, (_, at) => `line ${at}\n`);
    for (const text of texts) output.write(text);
    state.room = Infinity;
    turn();
    expect(state.text).toBe(texts.join(''));
    expect(Math.max(...state.writes)).toBeLessThanOrEqual(4096);
    expect(state.writes.length).toBeLessThan(texts.join('').length / 4000);
    expect([state.turns.length, state.text.endsWith('line 49999\n')]).toEqual([0, true]);
  });

  test('behaviour: at the end of the process a pipe is waited for while its reader reads', () => {
    const { output, state } = pipe(1);
    output.write('a'.repeat(1000));
    output.end();
    expect([state.text.length, state.slept]).toEqual([1000, 1000]);
  });

  test('behaviour: a reader of a pipe that is gone, or stands still, holds nothing up for ever', () => {
    const still = pipe(0);
    still.output.write('a');
    still.state.still = true;
    still.output.end();
    expect([still.state.text, still.state.slept]).toEqual(['', 200]);
    const { output, state } = pipe(1);
    output.write('ab');
    state.gone = true;
    output.end();
    output.write('c');
    expect([state.text, state.slept]).toEqual(['a', 0]);
  });
});
