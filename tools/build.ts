/** Builds dist: what runs, and the types for handler authors. `npm run build` */
import { rmSync } from 'node:fs'
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
