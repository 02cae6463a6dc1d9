// The words for what may come between people and an answer, and the tone of each. The flow offers what can be done:
// every card has a way on.
import { meaningOf, type RefusalCause } from './evm/words.ts';
import { money, type PricedWay } from './required.ts';
import type { ToldProblem } from './told-problem.ts';
import type { PriceDemand } from './send.ts';
import type { Card } from './view.ts';
import type { WalletFault } from './wallet.ts';

type Words = Pick<Card, 'headline' | 'sentences' | 'mood'>;

const NOTHING = 'Nothing was charged.';
const KEPT = 'Your signed payment is kept in this tab and sent again as it is: it cannot be charged twice.';

/** Explains a fault of a wallet; `asked` says what the wallet was asked for. */
export function faultWords(
  { kind, message }: WalletFault,
  asked: 'account' | 'network' | 'signature',
  { way }: PricedWay,
): Words {
  const nothing = asked === 'signature' ? [NOTHING] : [];
  switch (kind) {
    case 'refused':
      return {
        mood: 'warn',
        headline:
          asked === 'signature'
            ? 'You did not sign'
            : asked === 'network'
              ? 'The network was not changed'
              : 'No account was chosen',
        sentences: [
          ...nothing,
          asked === 'network' ? `This is paid on ${way.chainName}: the wallet has to be on it.` : 'You can try again.',
        ],
      };
    case 'prompt_open':
      return {
        mood: 'warn',
        headline: 'Your wallet already asks something',
        sentences: ['Open the wallet, answer or close what it shows there, then try again.'],
      };
    case 'unknown_network':
      return {
        mood: 'warn',
        headline: `Your wallet does not know ${way.chainName}`,
        sentences: [`Add the network ${way.network} in the settings of your wallet, then try again. This page cannot.`],
      };
    case 'disconnected':
      return {
        mood: 'warn',
        headline: 'Your wallet is not connected to its network',
        sentences: ['Check its connection, then try again.'],
      };
    case 'other':
      return { mood: 'bad', headline: 'The wallet could not do it', sentences: [`It says: ${message}`, ...nothing] };
    default:
      return kind satisfies never;
  }
}

/** Explains a 402 to a payment. `now` is the current price of the same way. */
export function demandWords({ reason, because }: PriceDemand, signed: string, now: PricedWay | undefined): Words {
  if (reason === 'payment_already_used')
    return {
      mood: 'warn',
      headline: 'This payment was used already',
      sentences: ['Its answer was delivered, and is not kept in this tab. For a new answer, pay again.'],
    };
  if (now !== undefined && now.accept.amount !== signed)
    return {
      mood: 'warn',
      headline: 'The price has changed',
      sentences: [`It was ${money(now.way, signed)} and is ${money(now.way, now.accept.amount)} now. ${NOTHING}`],
    };
  const why = meaningOf(because);
  if (why !== 'other') return REFUSED[why];
  const sentences = [`${NOTHING} The reason given: ${(because || reason).replaceAll('_', ' ')}.`];
  return { mood: 'warn', headline: 'The payment was not taken', sentences };
}

const REFUSED: Readonly<Record<Exclude<RefusalCause, 'other'>, Words>> = {
  too_little: {
    mood: 'warn',
    headline: 'Too little money',
    sentences: [`The account holds less than is asked for. ${NOTHING}`],
  },
  expired: {
    mood: 'warn',
    headline: 'The signature expired',
    sentences: [`It was not used in time. ${NOTHING} You can sign a new one.`],
  },
  too_early: {
    mood: 'warn',
    headline: 'The signature is not valid yet',
    sentences: [`Check the clock of this device. ${NOTHING}`],
  },
  signature: {
    mood: 'bad',
    headline: 'The signature was not accepted',
    sentences: [`${NOTHING} Try again, or use another account.`],
  },
  undeployed: {
    mood: 'warn',
    headline: 'This smart wallet cannot pay here yet',
    sentences: [`Use it once on this network, so that it is deployed, or pay from another account. ${NOTHING}`],
  },
};

/** Explains a payment that is sent again in a while. `taken` is the amount and its token. */
export function laterWords({ code, detail, charged, until }: ToldProblem, taken: string, nowMs: number): Words {
  if (charged === true) {
    const by = until === undefined ? 'For up to 24 hours' : `Until ${timeOf(until, nowMs)}`;
    return {
      ...{ mood: 'warn', headline: 'Paid, and the answer is not here yet' },
      sentences: [
        `${taken} was taken. ${BECAUSE[code] ?? detail}`,
        `${by} the very same request brings the answer without another charge. Do not pay again: keep this tab open, and it asks by itself.`,
      ],
    };
  }
  switch (code) {
    case 'lost':
      return { mood: 'warn', headline: 'The connection was lost', sentences: [`No whole answer arrived. ${KEPT}`] };
    case 'payment_in_use':
      return {
        mood: 'warn',
        headline: 'Your payment is being worked on',
        sentences: ['Another request with it is not over yet.', KEPT],
      };
    case 'settlement_unknown':
      return {
        mood: 'warn',
        headline: 'Your payment is on its way',
        sentences: [
          `Whether it arrived is not known yet${until === undefined ? '' : `; by ${timeOf(until, nowMs)} it will be`}. Do not pay again.`,
          KEPT,
        ],
      };
    default: {
      const because = charged === false ? BECAUSE[code] : undefined;
      return because === undefined
        ? { mood: 'warn', headline: 'It cannot be answered right now', sentences: [detail, KEPT] }
        : { mood: 'warn', headline: 'No answer, and nothing was taken', sentences: [`${because} ${NOTHING}`, KEPT] };
    }
  }
}

/** Reasons for a late answer, without the words of programs. */
const BECAUSE: Readonly<Record<string, string>> = {
  upstream_unreachable: 'The service behind this page gave no answer.',
  upstream_timeout: 'The service behind this page did not answer in time.',
};

/** A time of day, with its day if that is another one. */
function timeOf(ms: number, nowMs: number): string {
  const time = new Date(ms);
  const isToday = time.toDateString() === new Date(nowMs).toDateString();
  return time.toLocaleString('en', {
    ...(isToday ? {} : { day: 'numeric', month: 'long' }),
    hour: '2-digit',
    minute: '2-digit',
    hourCycle: 'h23',
  });
}

/** A span of time as people say it. */
export function inWords(seconds: number): string {
  if (seconds < 90) return seconds === 1 ? 'a second' : `${seconds} seconds`;
  return `${Math.round(seconds / 60)} minutes`;
}

/** Explains a problem that came before anything was signed. */
export function unpaidWords({ code, detail }: ToldProblem): Words {
  return code === 'lost'
    ? {
        mood: 'warn',
        headline: 'The server cannot be reached',
        sentences: ['Check your connection, then try again. Nothing was signed.'],
      }
    : { mood: 'warn', headline: 'It cannot be paid right now', sentences: [detail, 'Nothing was signed.'] };
}

/** Asking again does not help. `taken`: the amount and its token. */
export function failedWords({ code, detail, owed = false, support, charge }: ToldProblem, taken: string): Words {
  if (owed) {
    const who = support === undefined ? 'the owner of this service' : 'the address below';
    return {
      ...{ mood: 'bad', headline: 'Paid, and the answer cannot be had' },
      sentences: [
        `${taken} was taken, and the service never gave the answer. It is owed to you.`,
        `Do not pay again. Write to ${who} and name the ${charge === undefined ? 'transaction' : 'charge'}: it says who paid what, and when.`,
      ],
    };
  }
  return code === 'already_paid'
    ? { mood: 'warn', headline: 'This was paid already', sentences: [detail] }
    : { mood: 'bad', headline: 'The payment could not be used', sentences: [detail] };
}

/**
 * The service answered, and it was not charged, or it failed behind the charge. `taken`: the amount and its token, if it
 * was. `isPlace`: it named an address.
 */
export function answeredWords(status: number, isPlace: boolean, taken: string | undefined): Words {
  const title = isPlace ? 'The service points elsewhere' : `The service answered ${status}`;
  const charged =
    taken === undefined
      ? 'It came without a receipt, so nothing was charged for it.'
      : `${taken} was taken before it failed. For 24 hours the very same request is asked again without another charge: do so when the service works.`;
  const kept = isPlace
    ? 'Your signed payment was not sent there. It is kept in this tab.'
    : 'Your signed payment is kept in this tab.';
  return { mood: 'warn', headline: title, sentences: [charged, kept] };
}

/** A redirect whose place no page can read. */
export const UNREADABLE_PLACE: Words = {
  ...{ mood: 'warn', headline: 'The service points elsewhere' },
  sentences: ['Where to cannot be read here. Your signed payment is kept in this tab.'],
};
