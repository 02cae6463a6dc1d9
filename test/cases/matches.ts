// Which route wins for which request: the rules of precedence as data. Run by the snapshot tests, by the linear
// oracle, through the registry's /match and through the proxy. `wins`: the winning rule, `free` or `undeclared`.

export type MatchCase = {
  readonly why: string;
  readonly rules: readonly string[];
  readonly asks: readonly (readonly [request: string, wins: string])[];
};

export const MATCHES: readonly MatchCase[] = [
  {
    why: 'a wildcard covers its prefix, its prefix with a slash, and everything below',
    rules: ['GET /p/*'],
    asks: [
      ['GET /p', 'GET /p/*'],
      ['GET /p/', 'GET /p/*'],
      ['GET /p/a', 'GET /p/*'],
      ['GET /p/a/b/c', 'GET /p/*'],
      ['GET /pa', 'free'],
      ['GET /', 'free'],
    ],
  },
  {
    why: 'literal over parameter over wildcard, segment by segment',
    rules: ['GET /a/b', 'GET /a/:x', 'GET /a/*', 'GET /:x/b', 'GET /*'],
    asks: [
      ['GET /a/b', 'GET /a/b'],
      ['GET /a/c', 'GET /a/:x'],
      ['GET /a/c/d', 'GET /a/*'],
      ['GET /a', 'GET /a/*'],
      ['GET /z/b', 'GET /:x/b'],
      ['GET /z', 'GET /*'],
      ['GET /', 'GET /*'],
    ],
  },
  {
    why: 'an earlier literal beats a later one: the walk goes back only where nothing below matches',
    rules: ['GET /a/:x/c', 'GET /:x/b/d'],
    asks: [
      ['GET /a/b/c', 'GET /a/:x/c'],
      ['GET /a/b/d', 'GET /:x/b/d'],
      ['GET /a/b', 'free'],
    ],
  },
  {
    why: 'the longest wildcard prefix wins, whatever the method is written as',
    rules: ['GET /a/*', '* /a/b/c/*'],
    asks: [
      ['GET /a/b/c/d', '* /a/b/c/*'],
      ['GET /a/b/x', 'GET /a/*'],
      ['POST /a/b/c/d', '* /a/b/c/*'],
    ],
  },
  {
    why: 'of one pattern, the exact method beats *',
    rules: ['GET /a', '* /a'],
    asks: [
      ['GET /a', 'GET /a'],
      ['POST /a', '* /a'],
    ],
  },
  {
    why: 'only routes whose method matches compete',
    rules: ['POST /a/b', '* /a/*'],
    asks: [
      ['GET /a/b', '* /a/*'],
      ['POST /a/b', 'POST /a/b'],
    ],
  },
  {
    why: 'HEAD: an exact HEAD route, else GET, else *',
    rules: ['HEAD /a', 'GET /a', '* /a', 'GET /b', '* /b', '* /c', 'POST /d'],
    asks: [
      ['HEAD /a', 'HEAD /a'],
      ['HEAD /b', 'GET /b'],
      ['HEAD /c', '* /c'],
      ['HEAD /d', 'undeclared'],
    ],
  },
  {
    why: 'a method is undeclared where only routes of other methods match',
    rules: ['GET /a', 'GET /b/*'],
    asks: [
      ['POST /a', 'undeclared'],
      ['DELETE /b/c', 'undeclared'],
      ['POST /c', 'free'],
    ],
  },
  {
    why: 'parameters take one segment; one behind a slash at the end may be empty, as some routers have it',
    rules: ['GET /a/{id}', 'GET /f/{p:path}'],
    asks: [
      ['GET /a/1', 'GET /a/{id}'],
      ['GET /a/', 'GET /a/{id}'],
      ['GET /a', 'free'],
      ['GET /a/1/2', 'free'],
      ['GET /f/1/2', 'GET /f/{p:path}'],
      ['GET /f', 'GET /f/{p:path}'],
    ],
  },
  {
    why: 'attack: a parameter whose compatibility form has more slashes, or nothing',
    rules: ['GET /a/{id}'],
    asks: [
      ['GET /a/%EF%BC%8F', 'GET /a/{id}'],
      ['GET /a/%EF%BC%BC', 'GET /a/{id}'],
      ['GET /a/%E2%84%80', 'GET /a/{id}'],
      ['GET /a/%C2%AD', 'GET /a/{id}'],
      ['GET /a/%EF%BC%9Bx', 'GET /a/{id}'],
    ],
  },
  {
    why: 'attack: letters that some router takes for the ones of the pattern',
    rules: ['GET /v1/kiss'],
    asks: [
      ['GET /v1/%E2%84%AAiss', 'GET /v1/kiss'],
      ['GET /v1/k%C4%B1ss', 'GET /v1/kiss'],
      ['GET /v1/k%C4%B0ss', 'GET /v1/kiss'],
      ['GET /v1/ki%C5%BF%C5%BF', 'GET /v1/kiss'],
      ['GET /v1/ki%C3%9F', 'GET /v1/kiss'],
      ['GET /v1/ki%C2%ADss', 'GET /v1/kiss'],
      ['GET /v1/kiss%EF%BB%BF', 'GET /v1/kiss'],
      ['GET /v1/kiss%E1%9A%80', 'GET /v1/kiss'],
      ['GET /v1/%20kiss', 'GET /v1/kiss'],
    ],
  },
  {
    why: 'attack: a path that becomes a query or is handed to a script',
    rules: ['GET /v1/kiss', 'GET /v1/my%20report', 'GET /v1/run.php'],
    asks: [
      ['GET /v1/kiss&x=y', 'GET /v1/kiss'],
      ['GET /v1/kiss%26x', 'GET /v1/kiss'],
      ['GET /v1/kiss+', 'GET /v1/kiss'],
      ['GET /v1/my+report', 'GET /v1/my%20report'],
      ['GET /index.php/v1/kiss', 'GET /v1/kiss'],
      ['GET /a.php/b.cgi/v1/kiss', 'GET /v1/kiss'],
      ['GET /v1/run.php/anything', 'GET /v1/run.php'],
      ['GET /v1/other+', 'free'],
    ],
  },
  {
    why: 'patterns are folded like paths',
    rules: ['GET /Café/Menu/', 'GET /a%20b/*'],
    asks: [
      ['GET /caf%C3%A9/menu', 'GET /Café/Menu/'],
      ['GET /CAF%C3%89/MENU', 'GET /Café/Menu/'],
      ['GET /a%20b/c', 'GET /a%20b/*'],
      ['GET /A%20B', 'GET /a%20b/*'],
    ],
  },
  {
    why: 'a suffix is looked up a second time, where the whole has no route',
    rules: ['GET /v1/export', 'GET /v1/export.csv', 'GET /files/*'],
    asks: [
      ['GET /v1/export.csv', 'GET /v1/export.csv'],
      ['GET /v1/export.json', 'GET /v1/export'],
      ['GET /v1/export.tar.gz', 'GET /v1/export'],
      ['GET /files/a.b', 'GET /files/*'],
      // A dot may be a slash to a router.
      ['GET /v1/.export', 'GET /v1/export'],
    ],
  },
  {
    why: 'another name of a path never costs less than the dearer of the two, except where that is spelled letter by letter',
    rules: ['GET /v1/* 0.01', 'GET /v1/export 1.00', 'GET /v1/export.csv 0.02', 'GET /r/:id 0.01', 'GET /r/all 1.00'],
    asks: [
      ['GET /v1/export.json', 'GET /v1/export'],
      ['GET /v1/export.tar.gz', 'GET /v1/export'],
      ['GET /v1/export.csv', 'GET /v1/export.csv'],
      ['GET /v1/EXPORT.csv', 'GET /v1/export'],
      ['GET /v1/other.json', 'GET /v1/*'],
      ['GET /v1.export', 'GET /v1/export'],
      ['GET /r/all.json', 'GET /r/all'],
      ['GET /r/one.json', 'GET /r/:id'],
    ],
  },
  {
    why: 'of one pattern only the route whose method fits best counts, also where the winner is spelled in another way',
    rules: ['POST /* 1.00', '* /* 3.00', 'POST /:x/a 1.00'],
    asks: [
      ['POST /b/a', 'POST /:x/a'],
      ['POST /b/A', 'POST /:x/a'],
      ['PUT /b/A', '* /*'],
    ],
  },
  {
    why: 'names that some routers have for a path lead to its route',
    rules: [
      'GET /',
      'GET /v1/export',
      'GET /v1/daily_report',
      'GET /v1/weekly-report',
      'GET /v1/data.json',
      'GET /m/x/*',
    ],
    asks: [
      ['GET /_next/data/aB3/v1/export.json', 'GET /v1/export'],
      ['GET /_next/data/aB3/index.json', 'GET /'],
      ['GET /v1/export.segments/_tree.segment.rsc', 'GET /v1/export'],
      ['GET /v1/export/__data.json', 'GET /v1/export'],
      ['GET /v1/export.html__data.json', 'GET /v1/export'],
      ['GET /__data.json', 'GET /'],
      ['GET /v1/export/_payload.json', 'GET /v1/export'],
      ['GET /v1/export/index', 'GET /v1/export'],
      ['GET /v1/Export/INDEX', 'GET /v1/export'],
      ['GET /v1/export/index.html', 'GET /v1/export'],
      ['GET /index', 'GET /'],
      ['GET /index.php', 'GET /'],
      ['GET /.json', 'GET /'],
      ['GET /_root.data', 'GET /'],
      ['GET /v1.export', 'GET /v1/export'],
      ['GET /m.x/y', 'GET /m/x/*'],
      ['GET /m/x.y/z', 'GET /m/x/*'],
      ['GET /v1/@@export', 'GET /v1/export'],
      ['GET /v1/export/@@', 'GET /v1/export'],
      ['GET /v1/free,export', 'GET /v1/export'],
      ['GET /v1/1,2,3', 'free'],
      ['GET /v1/daily-report', 'GET /v1/daily_report'],
      ['GET /v1/weekly_report', 'GET /v1/weekly-report'],
      ['GET /v1/data.json/x', 'GET /v1/data.json'],
      ['GET /v1/export/x', 'free'],
      ['GET /v1/exports', 'free'],
      ['GET /.well-known', 'free'],
      ['GET /v1/indexes', 'free'],
    ],
  },
  {
    why: 'where a path can be read in two ways, the dearest reading counts',
    rules: ['GET /a/* 0.10', 'GET /a/b/c 5.00', 'GET /a/:x/c 1.00'],
    asks: [
      ['GET /a/b/c', 'GET /a/b/c'],
      ['GET /a/b;x/c', 'GET /a/b/c'],
      ['GET /a/;x/c', 'GET /a/:x/c'],
      ['GET /a/b/c;d/e', 'GET /a/b/c'],
    ],
  },
];
