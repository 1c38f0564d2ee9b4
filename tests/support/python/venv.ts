import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { execa } from '../tools.ts'

export interface BasePython {
  readonly python: string
  /** `3.11` */
  readonly version: string
  /** Where its packages are. */
  readonly sitePackages: readonly string[]
}

const PIP_LIMIT_MS = 600_000
const SCRIPT = `
import ensurepip, json, site, sys, venv
assert sys.version_info >= (3, 8)
print(json.dumps({
    "python": sys.executable,
    "version": "%d.%d" % sys.version_info[:2],
    "sitePackages": site.getsitepackages(),
}))
`

/**
 * A Python 3.8 or newer that can create environments with pip. @param python a command; undefined: the first
 * on PATH
 */
export async function findBasePython(python?: string): Promise<BasePython | undefined> {
  for (const command of python === undefined ? ['python3', 'python'] : [python]) {
    const { stdout, failed } = await execa(command, ['-c', SCRIPT], { reject: false, stdin: 'ignore' })
    if (!failed) return JSON.parse(stdout) as BasePython
  }
  return undefined
}

/** @param paths folders that are searched for packages behind its own */
export async function makeVenv(python: string, folder: string, paths: readonly string[]): Promise<void> {
  await execa(python, ['-m', 'venv', folder], { stdin: 'ignore' })
  const packages = await purelib(join(folder, 'bin', 'python'))
  // Unlike a bare path, this also reads the .pth files that are there.
  const lines = paths.map((path) => `import site; site.addsitedir(${JSON.stringify(path)})\n`)
  await writeFile(join(packages, 'tests.pth'), lines.join(''))
}

export async function installPackages(folder: string, packages: readonly string[]): Promise<void> {
  await execa(
    join(folder, 'bin', 'python'),
    ['-m', 'pip', 'install', '--quiet', '--disable-pip-version-check', ...packages],
    { stdin: 'ignore', timeout: PIP_LIMIT_MS },
  )
}

/** The folder of an interpreter's packages. */
export async function purelib(python: string): Promise<string> {
  const { stdout } = await execa(python, ['-c', 'import sysconfig; print(sysconfig.get_path("purelib"))'])
  return stdout.trim()
}
