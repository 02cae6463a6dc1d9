// Schemas of the endpoints about API keys.
import { z } from 'zod';
import { SCOPES } from '../../domain/scope.ts';
import { KEY_NAME } from '../auth/api-keys.ts';
import { documented } from '../http/schemas.ts';

const scopes = z.array(z.enum(SCOPES));

const keyView = z.object({
  id: z.string().nullable(),
  name: z.string(),
  scopes,
  where: z.enum(['store', 'configuration']),
  created_at: z.iso.datetime().nullable(),
  created_by: z.string().nullable(),
  last_used_at: z.iso.datetime().nullable(),
  revoked_at: z.iso.datetime().nullable(),
});
export type KeyView = z.output<typeof keyView>;

export const keyList = z.object({ data: z.array(keyView) });
export const newKey = z.object({ ...keyView.shape, key: z.string() });
export const keyBody = z.strictObject({
  name: z.string().regex(KEY_NAME, '1 to 64 visible ASCII characters'),
  scopes: scopes.min(1, 'at least one scope'),
});
export const keyParams = z.object({ id: z.string().regex(/^[0-9a-f]{16}$/) });

documented.add(keyView, {
  id: 'ApiKey',
  description: 'A key of the configuration has no `id`. `last_used_at` is to the hour. Never the key itself.',
});
documented.add(keyList, { id: 'ApiKeyList' });
documented.add(newKey, { id: 'NewApiKey', description: '`key` is told once and cannot be had again.' });
documented.add(keyBody, { id: 'ApiKeyCreation' });
