// Storage of this tab for its address, so that a reload neither loses an answer nor asks for money again. It keeps a
// payment, from before it is sent until its answer is whole. Then it keeps the answer. It ends with the tab.
import type { Accept } from './required.ts';

export type TabPayment = {
  readonly kind: 'payment';
  readonly header: string;
  readonly accept: Accept;
  /** Time of this browser, in milliseconds, before the page asked for the quote that is paid. */
  readonly quotedAt: number;
  /** Charge id, once it is sure. */
  readonly charge?: string | undefined;
};

export type TabAnswer = {
  readonly kind: 'answer';
  readonly accept: Accept;
  readonly receipt: PaidReceipt | undefined;
  readonly status: number;
  readonly type: string;
  readonly name: string;
  readonly size: number;
  /** base64; null: it was too large to be kept. */
  readonly body: string | null;
};

/** Receipt of a payment. `transaction`: undefined if the server did not say it. `charge`: undefined if not sure. */
export type PaidReceipt = { readonly transaction: string | undefined; readonly charge: string | undefined };

export type TabStore = {
  readonly read: () => TabPayment | TabAnswer | undefined;
  /** Keeps a value; false if this browser keeps nothing. */
  readonly write: (value: TabPayment | TabAnswer) => boolean;
  readonly clear: () => void;
};

type Address = { readonly pathname: string; readonly search: string };

export function createKept({ pathname, search }: Address): TabStore {
  const key = `tollgate 1 ${pathname}${search}`;
  return {
    read: () => {
      try {
        const text = sessionStorage.getItem(key);
        return text === null ? undefined : (JSON.parse(text) as TabPayment | TabAnswer);
      } catch {
        return undefined;
      }
    },
    write: (value) => {
      try {
        sessionStorage.setItem(key, JSON.stringify(value));
        return true;
      } catch {
        return false;
      }
    },
    clear: () => {
      try {
        sessionStorage.removeItem(key);
      } catch {
        // A browser that refuses storage kept nothing.
      }
    },
  };
}

const CHUNK = 0x80_00;

export function toBase64(bytes: Uint8Array): string {
  let text = '';
  for (let at = 0; at < bytes.length; at += CHUNK) text += String.fromCharCode(...bytes.subarray(at, at + CHUNK));
  return btoa(text);
}

export function fromBase64(text: string): Uint8Array<ArrayBuffer> {
  return Uint8Array.from(atob(text), (character) => character.charCodeAt(0));
}
