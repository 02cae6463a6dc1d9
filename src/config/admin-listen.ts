// The address of the admin listener if the configuration has none: TOLLGATE_ADMIN_LISTEN. The container image sets it
// to every address, because probes and Prometheus reach a container from outside. It never overrules a configuration.
import { LISTEN_ADVICE, parseListen } from './addresses.ts';
import type { Env } from './environment.ts';
import { isMap, type Issue } from './problems.ts';

export const ADMIN_LISTEN_VARIABLE = 'TOLLGATE_ADMIN_LISTEN';

/** Writes what the variable says into `data` (changing it) if `admin.listen` is missing; complains if it is no address. */
export function fillAdminListen(data: unknown, env: Env): Issue[] {
  const value = env[ADMIN_LISTEN_VARIABLE];
  if (value === undefined || value === '' || !isMap(data)) return [];
  const admin = data['admin'] ?? {};
  if (!isMap(admin) || Object.hasOwn(admin, 'listen')) return [];
  if (parseListen(value) === undefined) {
    return [
      {
        path: ['admin', 'listen'],
        message: `is not written, and the environment variable ${ADMIN_LISTEN_VARIABLE} is not ${LISTEN_ADVICE}`,
      },
    ];
  }
  data['admin'] = { ...admin, listen: value };
  return [];
}
