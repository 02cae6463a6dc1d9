export { paidAnswer as POST } from '../../../../../../answer.js';

export const dynamic = 'force-dynamic';
