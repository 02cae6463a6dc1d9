export { PaidPage as default } from '../../../../answer.js';

export const dynamic = 'force-dynamic';
