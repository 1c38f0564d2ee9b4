import { execFile } from 'node:child_process'
import { cp, mkdir, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { promisify } from 'node:util'
import ts from 'typescript'
import { mutated, type Mutant } from './mutant.ts'

const run = promisify(execFile)
const REPOSITORY = join(import.meta.dirname, '..', '..')

/** A copy of the working tree in a folder of its own, built; mutants go into it, never into the checkout. */
export class WorkingCopy {
  readonly folder: string
  readonly #compilerOptions: ts.CompilerOptions

  private constructor(folder: string, compilerOptions: ts.CompilerOptions) {
    this.folder = folder
    this.#compilerOptions = compilerOptions
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
    const configFile = join(folder, 'tsconfig.build.json')
    const { config } = ts.readConfigFile(configFile, (path) => ts.sys.readFile(path)) as { config: unknown }
    const { options } = ts.parseJsonConfigFileContent(config, ts.sys, folder)
    return new WorkingCopy(folder, options)
  }

  /** Does `work` with the mutant in the source and in the built file. */
  async with<T>(mutant: Mutant, work: () => Promise<T>): Promise<T> {
    const source = join(this.folder, mutant.file)
    const built = join(this.folder, 'dist', mutant.file.replace(/\.ts$/, '.js'))
    const before = await readFile(source, 'utf8')
    // What is not built runs from its source only.
    const builtBefore = await readFile(built, 'utf8').catch(ignoreMissing)
    try {
      const text = mutated(mutant, before)
      // Otherwise a file that cannot be loaded would be what the tests notice.
      if (builtBefore !== undefined && this.#compiled(before, mutant.file) !== builtBefore)
        throw new Error(`${mutant.file} is not compiled as the build does it`)
      await writeFile(source, text)
      if (builtBefore !== undefined) await writeFile(built, this.#compiled(text, mutant.file))
      return await work()
    } finally {
      await writeFile(source, before)
      if (builtBefore !== undefined) await writeFile(built, builtBefore)
    }
  }

  async remove(): Promise<void> {
    await rm(this.folder, { recursive: true, force: true })
  }

  #compiled(text: string, fileName: string): string {
    // A single file says nothing of its package, whose modules are ES modules.
    const compilerOptions = { ...this.#compilerOptions, module: ts.ModuleKind.ESNext }
    return ts.transpileModule(text, { fileName, compilerOptions }).outputText
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
