// The OpenAPI document of the demo's small API, as its owner would write it. With `discovery` it is what the demo tells of
// itself at /openapi.json and in each 402.

const ANSWER = {
  type: 'object',
  properties: { from: { type: 'string' }, you_asked: { type: 'string' }, request_id: { type: 'string' } },
};

const answered = (description: string, path: string): object => ({
  '200': {
    description,
    content: {
      'application/json': {
        schema: { $ref: '#/components/schemas/Answer' },
        example: { from: 'the API behind Tollgate', you_asked: `GET ${path}` },
      },
    },
  },
});

const named = (name: string, description: string, example: string): object => ({
  name,
  in: 'path',
  required: true,
  description,
  schema: { type: 'string' },
  example,
});

export const DEMO_OPENAPI = {
  openapi: '3.1.0',
  info: { title: 'The small API of the demo', version: '1.0.0' },
  paths: {
    '/premium/report': {
      get: {
        operationId: 'report',
        summary: 'The quarterly report',
        responses: answered('The report', '/premium/report'),
      },
    },
    '/premium/data/{set}': {
      parameters: [named('set', 'The name of a data set', 'prices')],
      get: { operationId: 'data', summary: 'Raw data', responses: answered('The data', '/premium/data/prices') },
    },
    '/users/{id}/score': {
      parameters: [named('id', 'Whose score it is', '7')],
      get: { operationId: 'score', summary: 'A credit score', responses: answered('The score', '/users/7/score') },
    },
    '/beta/{feature}': {
      parameters: [named('feature', 'What is tried out', 'feature')],
      get: { operationId: 'beta', summary: 'Not for sale yet', responses: answered('It', '/beta/feature') },
    },
  },
  components: { schemas: { Answer: ANSWER } },
};
