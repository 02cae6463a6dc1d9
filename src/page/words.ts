// The words for what may come between people and an answer, and the tone of each. The flow offers what can be done:
// every card has a way on.
import { meaningOf, type RefusedBecause } from './evm/words.ts';
import { money, type Choice } from './required.ts';
import type { PriceTold, Failed, Later } from './send.ts';
import type { Card } from './view.ts';
import type { WalletFault } from './wallet.ts';

type Words = Pick<Card, 'title' | 'lines' | 'tone'>;

const NOTHING = 'Nothing was charged.';
const KEPT = 'Your signed payment is kept in this tab and sent again as it is: it cannot be charged twice.';

/** `asked`: what the wallet was asked for. */
export function faultWords(
  { kind, message }: WalletFault,
  asked: 'account' | 'network' | 'signature',
  { way }: Choice,
): Words {
  const nothing = asked === 'signature' ? [NOTHING] : [];
  switch (kind) {
    case 'refused':
      return {
        tone: 'warn',
        title:
          asked === 'signature'
            ? 'You did not sign'
            : asked === 'network'
              ? 'The network was not changed'
              : 'No account was chosen',
        lines: [
          ...nothing,
          asked === 'network'
            ? `This is paid on ${way.title}: the wallet has to be on it.`
            : 'You can try again whenever you like.',
        ],
      };
    case 'prompt_open':
      return {
        tone: 'warn',
        title: 'Your wallet already asks something',
        lines: ['Open the wallet, answer or close what it shows there, then try again.'],
      };
    case 'unknown_network':
      return {
        tone: 'warn',
        title: `Your wallet does not know ${way.title}`,
        lines: [
          `Add the network ${way.network} in the settings of your wallet, then try again. This page knows too little of it to do so.`,
        ],
      };
    case 'disconnected':
      return {
        tone: 'warn',
        title: 'Your wallet is not connected to its network',
        lines: ['Check its connection, then try again.'],
      };
    case 'other':
      return { tone: 'bad', title: 'The wallet could not do it', lines: [`It says: ${message}`, ...nothing] };
    default:
      return kind satisfies never;
  }
}

/** Of a 402 to a payment. `now`: what the same way costs now. */
export function demandWords({ reason, because }: PriceTold, signed: string, now: Choice | undefined): Words {
  if (reason === 'payment_already_used')
    return {
      tone: 'warn',
      title: 'This payment was used already',
      lines: ['Its answer was delivered, and is not kept in this tab. For a new answer, pay again.'],
    };
  if (now !== undefined && now.accept.amount !== signed)
    return {
      tone: 'warn',
      title: 'The price has changed',
      lines: [`It was ${money(now.way, signed)} and is ${money(now.way, now.accept.amount)} now. ${NOTHING}`],
    };
  const why = meaningOf(because);
  if (why !== 'other') return REFUSED[why];
  const lines = [`${NOTHING} The reason given: ${(because || reason).replaceAll('_', ' ')}.`];
  return { tone: 'warn', title: 'The payment was not taken', lines };
}

const REFUSED: Readonly<Record<Exclude<RefusedBecause, 'other'>, Words>> = {
  too_little: {
    tone: 'warn',
    title: 'Too little money',
    lines: [`The account holds less than is asked for. ${NOTHING}`],
  },
  expired: {
    tone: 'warn',
    title: 'The signature expired',
    lines: [`It was not used in time. ${NOTHING} You can sign a new one.`],
  },
  too_early: {
    tone: 'warn',
    title: 'The signature is not valid yet',
    lines: [`Check the clock of this device. ${NOTHING}`],
  },
  signature: {
    tone: 'bad',
    title: 'The signature was not accepted',
    lines: [`${NOTHING} Try again, or use another account.`],
  },
  undeployed: {
    tone: 'warn',
    title: 'This smart wallet cannot pay here yet',
    lines: [`Use it once on this network, so that it is deployed, or pay from another account. ${NOTHING}`],
  },
};

/** The same request is sent again by and by. */
export function laterWords({ code, detail }: Later): Words {
  switch (code) {
    case 'lost':
      return { tone: 'warn', title: 'The connection was lost', lines: [`No whole answer arrived. ${KEPT}`] };
    case 'payment_in_use':
      return {
        tone: 'warn',
        title: 'Your payment is being worked on',
        lines: ['Another request with it is not over yet.', KEPT],
      };
    case 'settlement_unknown':
      return {
        tone: 'warn',
        title: 'Your payment is on its way',
        lines: ['Whether it arrived is not known yet. Do not pay again.', KEPT],
      };
    default:
      return { tone: 'warn', title: 'It cannot be answered right now', lines: [detail, KEPT] };
  }
}

/** Before anything was signed. */
export function unpaidWords({ code, detail }: Later | Failed): Words {
  return code === 'lost'
    ? {
        tone: 'warn',
        title: 'The server cannot be reached',
        lines: ['Check your connection, then try again. Nothing was signed.'],
      }
    : { tone: 'warn', title: 'It cannot be paid right now', lines: [detail, 'Nothing was signed.'] };
}

export function failedWords({ code, detail }: Failed): Words {
  return code === 'already_paid'
    ? { tone: 'warn', title: 'This was paid already', lines: [detail] }
    : { tone: 'bad', title: 'The payment could not be used', lines: [detail] };
}
