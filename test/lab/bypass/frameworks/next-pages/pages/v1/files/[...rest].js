import { paidProps } from '../../../props.js';

export { default } from '../../../page.js';

export async function getServerSideProps(context) {
  return paidProps(context);
}
