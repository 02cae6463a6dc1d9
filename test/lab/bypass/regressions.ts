// Requests that once got through, or that one measured upstream takes for something protected: each as small as it can be.
// They run against every upstream in every run. Data only; the comment says who was reached, and by what.
import { draftOf, type Draft } from './draft.ts';
import { MUTATIONS } from './mutations.ts';

const get = (target: string): Draft => draftOf('GET', target);

export const REGRESSIONS: readonly Draft[] = [
  // Every framework: the compatibility form of the parameter is a slash, or holds one, or is nothing.
  get('/v1/reports/%EF%BC%8F'),
  get('/v1/reports/%ef%bc%bc'),
  get('/v1/reports/%e2%84%80'),
  get('/v1/reports/%e2%85%93'),
  get('/v1/reports/%c2%ad'),
  get('/v1/files/%ef%bc%8f'),
  // Fastify and Echo fill the parameter with nothing.
  get('/v1/reports/'),
  draftOf('POST', '/v1/teams/red/jobs/'),
  // Routers that tell letter case apart: not the paused neighbour but the parameter.
  get('/v1/reports/OPEN'),
  get('/v1/reports/open.'),
  get('/v1/reports/%6fpen%20'),
  get('/v1/files/Public'),
  get('/v1/files/public/'),
  // Caddy and Go in lower case, others in upper case: a dotted and a dotless i, the Kelvin sign, long and sharp s.
  get('/v1/K%c4%b0ss/Data'),
  get('/v1/K%c4%b1ss/Data'),
  get('/v1/%e2%84%aaiss/Data'),
  get('/v1/Ki%c5%bf%c5%bf/Data'),
  get('/v1/Ki%c3%9f/Data'),
  // Sinatra, and whatever reads a path as a form: a plus sign is a space.
  get('/v1/my+report'),
  get('/v1/export+'),
  // h3 1 looks for the query in what it has decoded.
  get('/v1/export%3F'),
  // Rewrite rules that make the path a query.
  get('/v1/export&x=y'),
  get('/v1/export%26x=y'),
  get('/v1/%2565xport'),
  // Front controllers of PHP with PATH_INFO, and scripts that run whatever follows their name.
  get('/index.php/v1/export'),
  get('/free/index.php/v1/export'),
  get('/v1/export.php/x'),
  // With slashes kept: a router that splits at the slash and not at the backslash; one that reads an authority.
  get('/v1%2freports%2fa%5cb'),
  get('//x/v1/export'),
  // What trims finds more to trim than a plain space.
  get('/v1/%20export'),
  get('/v1/export%e1%9a%80'),
  get('/v1/export%ef%bb%bf'),
  // Behind HAProxy, which forwards such a Host: whoever makes a URL of Host and target.
  draftOf('GET', '/free/x', {
    headers: [
      ['Host', 'localhost/v1/export?'],
      ['Connection', 'close'],
    ],
  }),
  // What would get through if a rule were missing.
  ...MUTATIONS.flatMap(({ needed }) => needed.map(([, draft]) => draft)),
];
