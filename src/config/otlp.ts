// The keys of `otlp`: where spans go, and how many of them. Left out, nothing is traced and nothing of it is loaded.
import { z } from 'zod';
import { described, headerName, text, url, whatStands } from './fields.ts';
import { key, section } from './keys.ts';

const HEADER = 'a header value of visible ASCII characters';
const ATTRIBUTE = 'text of 1 to 1024 characters';
const SHARE = 'a number from 0 to 1, such as 0.05';
/** Headers that the exporter writes, whatever is configured: they say what a batch is. */
const FRAMING =
  /^(?:host|connection|keep-alive|content-length|content-type|content-encoding|transfer-encoding|expect|upgrade|user-agent)$/i;
const SERVICE = 'service.name';
/** Path that collectors take spans at (OTLP/HTTP). */
const TRACES = '/v1/traces';

const endpoint = url('the http or https URL of an OTLP collector, without user and query').transform((written) =>
  new URL(written).pathname === '/' ? written + TRACES : written,
);

const headers = z
  .record(
    headerName('a header name of letters, digits and dashes'),
    text(HEADER, (value) => /^[\x20-\x7e\t]{1,4096}$/.test(value)),
  )
  .superRefine((given, context) => {
    for (const name of Object.keys(given).filter((each) => FRAMING.test(each)))
      context.addIssue({ code: 'custom', path: [name], message: 'is written by Tollgate itself; take it out' });
  });

const attributes = z
  .record(
    text('a name such as deployment.environment.name', (name) => /^[A-Za-z][A-Za-z0-9_.-]{0,127}$/.test(name)),
    text(ATTRIBUTE, (value) => value.length > 0 && value.length <= 1024),
  )
  .superRefine((given, context) => {
    if (Object.hasOwn(given, SERVICE))
      context.addIssue({ code: 'custom', path: [SERVICE], message: 'is what otlp.service_name says; write it there' });
  });

const share = described(
  z
    .number({ error: ({ input }) => `${whatStands(input)}; write ${SHARE}` })
    .refine((value) => value >= 0 && value <= 1, { error: `is not ${SHARE}` }),
  'a number from 0 to 1',
);

export const otlpSection = section({
  endpoint: key(
    'endpoint',
    endpoint.prefault('http://127.0.0.1:4318'),
    'The collector that spans are sent to, over OTLP/HTTP with JSON. `/v1/traces` is added if the path is empty.',
  ),
  headers: key('headers', described(headers, 'header names with values').default({}), 'Headers sent to the collector.'),
  service_name: key(
    'serviceName',
    text('a name of 1 to 255 characters', (value) => value.length > 0 && value.length <= 255).default('tollgate'),
    'The name of this service in traces.',
  ),
  sample: key(
    'sample',
    share.default(0.05),
    'The share of requests that are traced. The flag of a caller counts instead if `proxy.trusted_proxies` holds it.',
  ),
  attributes: key(
    'attributes',
    described(attributes, 'attribute names with values').default({}),
    'Resource attributes of every span.',
  ),
});
