// Places for those who may write an export at the same time: each reads on in the ledger as long as its reader does.

export type ExportPlaces = {
  /** Undefined: all are taken. What it returns gives the place back, once. */
  readonly take: () => (() => void) | undefined;
};

export const EXPORTS_AT_ONCE = 2;

export function createExportPlaces(): ExportPlaces {
  let taken = 0;
  return {
    take: () => {
      if (taken >= EXPORTS_AT_ONCE) return undefined;
      taken++;
      let isBack = false;
      return () => {
        if (!isBack) taken--;
        isBack = true;
      };
    },
  };
}
