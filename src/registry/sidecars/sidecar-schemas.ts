// Schemas of the endpoint about sidecars.
import { z } from 'zod';
import { documented } from '../http/schemas.ts';

const sidecarView = z.object({
  name: z.string(),
  version: z.string().nullable(),
  address: z.string().nullable(),
  since: z.iso.datetime().nullable(),
  last_seen: z.iso.datetime(),
  revision: z.int().nullable(),
  behind: z.int().nullable(),
  ready: z.boolean().nullable(),
  reasons: z.array(z.string()),
});
export type ShownSidecar = z.output<typeof sidecarView>;

export const sidecarList = z.object({ data: z.array(sidecarView) });

documented.add(sidecarView, {
  id: 'Sidecar',
  description:
    'A sidecar by its own word; `address` and `last_seen` are what the registry saw. `behind` counts changes of routes that it does not have yet. What a sidecar does not say of itself is null.',
});
documented.add(sidecarList, { id: 'SidecarList' });
