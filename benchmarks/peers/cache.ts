import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { homedir } from 'node:os'
import { join } from 'node:path'
import { execa } from 'execa'
import { makeOnce } from '../../tests/support/python/make-once.ts'
import { findBasePython, installPackages, makeVenv, purelib } from '../../tests/support/python/venv.ts'

/** Where peers are installed, outside the repository, so that a fresh checkout finds them. */
export const CACHE = join(
  process.env['XDG_CACHE_HOME'] ?? join(homedir(), '.cache'),
  'torchserve-ts',
  'peers',
)

const NPM_LIMIT_MS = 300_000

/** A Python environment of one peer. */
export interface PythonFolder {
  /** The interpreter. */
  python: string
  /** The folder of its commands. */
  bin: string
  /** The folder of its packages. */
  packages: string
}

export function pythonFolder(name: string): Omit<PythonFolder, 'packages'> {
  const bin = join(CACHE, name, 'bin')
  return { bin, python: join(bin, 'python') }
}

/**
 * Installs packages from PyPI, once.
 * @param paths folders that are searched for packages behind its own
 * @returns what is installed, as `pip freeze` says it
 */
export async function installPython(
  name: string,
  packages: readonly string[],
  paths: readonly string[] = [],
): Promise<readonly string[]> {
  const base = await findBasePython()
  if (base === undefined) throw new Error('It needs Python 3 with venv and pip.')
  const folder = join(CACHE, name)
  const list = join(folder, 'installed.txt')
  await makeOnce(folder, JSON.stringify([base.version, packages, paths]), async () => {
    await makeVenv(base.python, folder, paths)
    await installPackages(folder, packages)
    const { stdout } = await execa(pythonFolder(name).python, ['-m', 'pip', 'freeze'], { stdin: 'ignore' })
    writeFileSync(list, stdout)
  })
  return [`Python ${base.version}`, ...readFileSync(list, 'utf8').split('\n')]
}

export async function pythonPackages(name: string): Promise<string> {
  return purelib(pythonFolder(name).python)
}

/** Installs packages from npm, once. @returns what is installed */
export async function installNode(name: string, packages: readonly string[]): Promise<readonly string[]> {
  const folder = join(CACHE, name)
  await makeOnce(folder, JSON.stringify([process.version, packages]), async () => {
    mkdirSync(folder, { recursive: true })
    writeFileSync(join(folder, 'package.json'), '{"private":true}\n')
    const flags = ['--ignore-scripts', '--no-audit', '--no-fund', '--save-exact']
    await execa('npm', ['install', ...flags, ...packages], {
      ...{ cwd: folder, stdin: 'ignore', timeout: NPM_LIMIT_MS },
    })
  })
  const lock = JSON.parse(readFileSync(join(folder, 'package-lock.json'), 'utf8')) as {
    packages: Record<string, { version: string }>
  }
  const names = Object.entries(lock.packages).filter(([path]) => path !== '')
  return names.map(([path, { version }]) => `${path.replace(/^.*node_modules\//, '')}@${version}`)
}
