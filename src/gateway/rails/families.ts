// The chain families that this program knows, in the order in which they are asked whether a network is theirs.
import { EVM } from './evm/family.ts';
import type { ChainFamily } from './family.ts';
import { SVM } from './svm/family.ts';

export const FAMILIES: readonly ChainFamily[] = [EVM, SVM];
