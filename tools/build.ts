/** Builds dist: what runs, and the types for handler authors. `npm run build` */
import { chmodSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { execa } from 'execa'
import { bundle } from './bundle.ts'

const ROOT = join(import.meta.dirname, '..')

rmSync(join(ROOT, 'dist'), { recursive: true, force: true })
const tsc = join(ROOT, 'node_modules', 'typescript', 'bin', 'tsc')
await Promise.all([
  bundle(ROOT),
  execa(process.execPath, [tsc, '-p', 'tsconfig.build.json'], { cwd: ROOT, stdio: 'inherit' }),
])

const { bin } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as {
  bin: Record<string, string>
}
// A linked package runs these files themselves.
for (const file of Object.values(bin)) chmodSync(join(ROOT, file), 0o755)
