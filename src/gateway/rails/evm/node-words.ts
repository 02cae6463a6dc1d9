// How the nodes of an EVM chain write numbers, words of 32 bytes and addresses.
// Source: the Ethereum JSON-RPC specification.
import { z } from 'zod';

export const quantity = z
  .string()
  .regex(/^0x(?:0|[1-9a-f][0-9a-f]{0,15})$/i)
  .transform(BigInt);
export const word = z
  .string()
  .regex(/^0x[0-9a-f]{64}$/i)
  .toLowerCase();
export const address = z
  .string()
  .regex(/^0x[0-9a-f]{40}$/i)
  .toLowerCase();
