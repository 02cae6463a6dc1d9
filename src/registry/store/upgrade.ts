// What is said before a file of an older version is brought up to date, whoever opens it.

/** From one version of the schema to another. */
export type Upgrade = { readonly from: number; readonly to: number };

/** `upgrade` is told before the first migration runs. */
export type OnUpgrade = (upgrade: Upgrade) => void;

export const UPGRADE_TAKES = 'a million charges take about half a minute';
/** For the log. */
export const UPGRADING = `the store is brought up to date; ${UPGRADE_TAKES}`;
