import { freeProps } from '../../../props.js';

export { default } from '../../../page.js';

export async function getServerSideProps(context) {
  return freeProps(context);
}
