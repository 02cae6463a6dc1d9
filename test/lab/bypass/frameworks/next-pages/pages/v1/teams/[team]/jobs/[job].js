import { postProps } from '../../../../../props.js';

export { default } from '../../../../../page.js';

export async function getServerSideProps(context) {
  return postProps(context);
}
