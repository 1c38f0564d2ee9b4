import { execFile } from 'node:child_process'
import { cp, mkdir, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { promisify } from 'node:util'
import { bundle } from '../../tools/bundle.ts'
import { mutated, type Mutant } from './mutant.ts'

const run = promisify(execFile)
const REPOSITORY = join(import.meta.dirname, '..', '..')

/** A copy of the working tree in a folder of its own, built; mutants go into it, never into the checkout. */
export class WorkingCopy {
  readonly folder: string
  /** The files that dist is made of. */
  readonly #bundled: readonly string[]

  private constructor(folder: string, bundled: readonly string[]) {
    this.folder = folder
    this.#bundled = bundled
  }

  /** Holds what git tracks or would track, and the node_modules of the checkout as a link. */
  static async make(): Promise<WorkingCopy> {
    const folder = await mkdtemp(join(tmpdir(), 'tsts-mutants-'))
    const list = ['ls-files', '-z', '--cached', '--others', '--exclude-standard', '--deduplicate']
    const { stdout } = await run('git', list, { cwd: REPOSITORY, maxBuffer: 64 * 1024 * 1024 })
    for (const file of stdout.split('\0').filter((name) => name !== '')) {
      await mkdir(dirname(join(folder, file)), { recursive: true })
      // A file that was removed without a commit is still listed.
      await cp(join(REPOSITORY, file), join(folder, file)).catch(ignoreMissing)
    }
    await symlink(join(REPOSITORY, 'node_modules'), join(folder, 'node_modules'))
    await run('npm', ['run', '--silent', 'build'], { cwd: folder })
    return new WorkingCopy(folder, await bundle(folder))
  }

  /** Does `work` with the mutant in the source and in the build. */
  async with<T>(mutant: Mutant, work: () => Promise<T>): Promise<T> {
    const source = join(this.folder, mutant.file)
    const before = await readFile(source, 'utf8')
    // What is not built runs from its source only.
    const isBuilt = this.#bundled.includes(mutant.file)
    try {
      await writeFile(source, mutated(mutant, before))
      // A file that cannot be built would otherwise be what the tests notice: then this throws.
      if (isBuilt) await bundle(this.folder)
      return await work()
    } finally {
      await writeFile(source, before)
      if (isBuilt) await bundle(this.folder)
    }
  }

  async remove(): Promise<void> {
    await rm(this.folder, { recursive: true, force: true })
  }
}

/** Whether every mutant still fits the checkout: a line for each that does not. */
export async function unfitting(mutants: readonly Mutant[]): Promise<string[]> {
  const lines: string[] = []
  for (const mutant of mutants) {
    try {
      mutated(mutant, await readFile(join(REPOSITORY, mutant.file), 'utf8'))
    } catch (error) {
      lines.push(`${mutant.name}: ${(error as Error).message}`)
    }
  }
  return lines
}

function ignoreMissing(error: NodeJS.ErrnoException): undefined {
  if (error.code !== 'ENOENT') throw error
}
