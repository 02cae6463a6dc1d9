// The address of the admin listener if the configuration has none: TOLLGATE_ADMIN_LISTEN, which the container image sets
// to every address, because probes and Prometheus reach a container from outside of it. It fills a gap in a
// configuration, it never overrules one.
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
