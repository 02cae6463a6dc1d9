export { freeAnswer as GET } from '../../../../answer.js';

export const dynamic = 'force-dynamic';
