// Responses of a model upstream under a meter, and what is to be taken for each: written out here, and never asked of the code that
// reads them. Whatever says no amount for sure costs all or nothing, as the meter has it.
import { creditUnits } from '../../../../src/domain/selling/pass-book.ts';
import { CHARGE_AMOUNT, type Meter, type MeterSource } from '../../../../src/domain/selling/meter/meter.ts';
import type { Draw } from '../scheduler.ts';

export type MeteredResponse = {
  /** Flat name, value pairs, as `trailers`. */
  readonly headers: readonly string[];
  readonly pieces: readonly Buffer[];
  readonly trailers: readonly string[];
  /** The amount that it says; undefined: none that can be told for sure. */
  readonly costs: string | undefined;
};

/** Texts that a response gives for its amount or its units, one for each time that it says them. */
type Said = { readonly said: readonly string[]; readonly costs: string | undefined };

/** The asset has 6 decimals: what is finer is no amount. */
const AMOUNTS: readonly [Said, ...Said[]] = [
  { said: ['0.03'], costs: '0.03' },
  { said: ['0.041'], costs: '0.041' },
  { said: ['0.000001'], costs: '0.000001' },
  { said: ['0'], costs: '0' },
  { said: ['0.10'], costs: '0.1' },
  { said: ['0.100001'], costs: '0.100001' },
  { said: ['7'], costs: '7' },
  { said: [], costs: undefined },
  { said: ['0.0000001'], costs: undefined },
  { said: ['-0.01'], costs: undefined },
  { said: ['0.01', '0.01'], costs: undefined },
];

/** Price of one unit: rounded down to the asset's decimals, some units cost less than what they come to. */
const UNIT = { units: 3n, scale: 7 };
const UNITS: readonly [Said, ...Said[]] = [
  { said: ['100000'], costs: '0.03' },
  { said: ['4e5'], costs: '0.12' },
  { said: ['0'], costs: '0' },
  { said: ['3'], costs: '0' },
  { said: ['7'], costs: '0.000002' },
  { said: ['9000000000'], costs: '2700' },
  { said: [], costs: undefined },
  { said: ['null'], costs: undefined },
  { said: ['"100000"'], costs: undefined },
  { said: ['-5'], costs: undefined },
  { said: ['5', '5'], costs: undefined },
];

/** A meter of any kind; undefined: the plan has none. */
export function someMeter(draw: Draw): Meter | undefined {
  if (draw.chance(0.4)) return undefined;
  const usage = { kind: 'usage', path: ['usage', 'total'], unit: UNIT, tailBytes: 1_024 } as const;
  return {
    source: draw.pick<MeterSource>([{ kind: 'header' }, { kind: 'trailer' }, usage]),
    missing: draw.pick(['max', 'zero'] as const),
  };
}

export function someResponse(draw: Draw, { source: { kind } }: Meter): MeteredResponse {
  switch (kind) {
    case 'header': {
      const { said, costs } = draw.pick(AMOUNTS);
      return { headers: fieldsOf(said), pieces: [], trailers: [], costs };
    }
    case 'trailer': {
      const { said, costs } = draw.pick(AMOUNTS);
      return { headers: [], pieces: [Buffer.from('a body')], trailers: fieldsOf(said), costs };
    }
    case 'usage': {
      const { said, costs } = draw.pick(UNITS);
      const document = `{"usage":{${said.map((each) => `"total":${each}`).join(',')}}}`;
      const isStream = draw.chance(0.5);
      // The last event that has the number counts.
      const before = costs === undefined ? '{"text":"begun"}' : '{"usage":{"total":1}}';
      const text = isStream ? `data: ${before}\n\ndata: ${document}\n\ndata: [DONE]\n\n` : document;
      const cut = draw.below(text.length);
      return {
        headers: ['Content-Type', isStream ? 'text/event-stream' : 'application/json'],
        pieces: [Buffer.from(text.slice(0, cut)), Buffer.from(text.slice(cut))],
        ...{ trailers: [], costs },
      };
    }
    default:
      return kind satisfies never;
  }
}

/** What is to be taken of a price, in the unit of the books, for a response that says `costs`. */
export function dueFor({ missing }: Pick<Meter, 'missing'>, costs: string | undefined, price: bigint): bigint {
  if (costs === undefined) return missing === 'max' ? price : 0n;
  const amount = creditUnits(costs);
  return amount > price ? price : amount;
}

function fieldsOf(said: readonly string[]): readonly string[] {
  return said.flatMap((each) => [CHARGE_AMOUNT, each]);
}
