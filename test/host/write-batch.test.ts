// What leaves together: in order, at the end of the turn, each for itself.
import { EventEmitter } from 'node:events';
import type { ServerResponse } from 'node:http';
import { Socket } from 'node:net';
import { afterEach, expect, test, vi } from 'vitest';
import { createWriteBatch } from '../../src/host/write-batch.ts';

afterEach(() => vi.restoreAllMocks());

function stage() {
  const turns: (() => void)[] = [];
  const written: string[] = [];
  const socket = (name: string): Socket => {
    const made = new Socket();
    vi.spyOn(made, 'write').mockImplementation((text) => {
      if (text === 'throw') throw new Error('thrown');
      written.push(`${name} ${String(text)}`);
      return true;
    });
    return made;
  };
  const writeBatch = createWriteBatch((run) => void turns.push(run));
  return { writeBatch, turns, written, socket, endTurn: () => turns.splice(0).forEach((run) => run()) };
}

const ignore = (): void => undefined;

test('behaviour: writes of one turn leave at its end, all in the order given, and the turn is asked for once', () => {
  const { writeBatch, turns, written, socket, endTurn } = stage();
  const [a, b] = [socket('a'), socket('b')];
  writeBatch.write(a, '1', 'latin1', { onLeaving: () => void written.push('a leaves') });
  writeBatch.write(b, '2', 'latin1');
  writeBatch.write(a, '3', 'latin1');
  expect([written, turns.length]).toEqual([[], 1]);
  endTurn();
  expect(written).toEqual(['a leaves', 'a 1', 'b 2', 'a 3']);
  writeBatch.write(b, '4', 'latin1');
  endTurn();
  expect(written.at(-1)).toBe('b 4');
});

test('behaviour: a write given while the batch leaves goes with the next turn', () => {
  const { writeBatch, turns, written, socket, endTurn } = stage();
  const a = socket('a');
  writeBatch.write(a, '1', 'latin1', { onLeaving: () => writeBatch.write(a, '2', 'latin1') });
  endTurn();
  expect([written, turns.length]).toEqual([['a 1'], 1]);
  endTurn();
  expect(written).toEqual(['a 1', 'a 2']);
});

test('behaviour: nothing is written to a socket or a response that is gone by then, and nobody is told that it left', () => {
  const { writeBatch, written, socket, endTurn } = stage();
  const a = socket('a');
  const res = Object.assign(new EventEmitter(), { destroyed: false, end: vi.fn() });
  writeBatch.write(a, '1', 'latin1', { onLeaving: () => void written.push('a leaves') });
  writeBatch.end(res as unknown as ServerResponse, 'x', 'latin1');
  a.destroy();
  res.destroyed = true;
  endTurn();
  expect(written).toEqual([]);
  expect(res.end).not.toHaveBeenCalled();
});

test('behaviour: a write that throws keeps nobody else from leaving, and is not swallowed', () => {
  const { writeBatch, written, socket, endTurn } = stage();
  const nextTick = vi.spyOn(process, 'nextTick').mockImplementationOnce(ignore);
  writeBatch.write(socket('a'), 'throw', 'latin1');
  writeBatch.write(socket('b'), '2', 'latin1');
  endTurn();
  expect(written).toEqual(['b 2']);
  const [rethrow, error] = nextTick.mock.calls[0] ?? [];
  expect(() => rethrow?.(error)).toThrow('thrown');
});
