import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll } from '@jest/globals'
import { build, stop } from 'esbuild'
import { execa } from '../support/tools.ts'

const ROOT = fileURLToPath(new URL('../../', import.meta.url))

interface Ended {
  code: number
  out: string
  err: string
}

/**
 * A command of model-archiver/ as plain JavaScript, as users start it, so that many starts take little time.
 */
export function builtCommand(name: string): (cwd: string, ...args: string[]) => Promise<Ended> {
  /** Inside the repository, so that its packages are found. */
  const folder = join(ROOT, '.build', `archiver-${name}-${process.pid}`)
  const command = join(folder, 'cli.mjs')

  beforeAll(async () => {
    const entryPoints = [join(ROOT, 'model-archiver', `${name}.ts`)]
    const format = { bundle: true, packages: 'external', platform: 'node', format: 'esm' } as const
    await build({ entryPoints, outfile: command, ...format })
    await stop()
  })

  afterAll(() => rmSync(folder, { recursive: true, force: true }))

  return async (cwd, ...args) => {
    const result = await execa(process.execPath, [command, ...args], { cwd, reject: false })
    return { code: result.exitCode ?? -1, out: result.stdout, err: result.stderr }
  }
}
