import { existsSync, mkdirSync, readFileSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { execa } from 'execa'
import { extract } from 'tar'

/** There is nothing to compare with; the message says why. Not a failure. */
export class NothingBefore extends Error {}

/** What users install, and what decides which packages it runs with. */
const INSTALLED = ['dist', 'configs', 'libexec', 'proto', 'package-lock.json']

/** The state before the rebuild of the components, with which every later one is compared. */
const REFERENCE = '0787e2a0310568d923e933e0fc7526ee6f364bcc'

/**
 * The commit with which this checkout is compared.
 * @param named a commit to take instead of the reference
 * @throws NothingBefore without a history that has the reference
 */
export async function commitBefore(root: string, named = ''): Promise<string> {
  const name = named === '' ? REFERENCE : named
  const { exitCode, stdout } = await execa('git', ['rev-parse', '--verify', '--quiet', `${name}^{commit}`], {
    cwd: root,
    reject: false,
  })
  if (exitCode === 0) return stdout.trim()
  if (named !== '') throw new Error(`SPEED_BEFORE must be a commit of this repository, found ${named}`)
  throw new NothingBefore(`the history here lacks the reference, ${REFERENCE.slice(0, 10)}`)
}

/**
 * Writes a commit's files to a new folder and builds them, with the packages of `root` if it has the same
 * lock file.
 * @throws NothingBefore if that state cannot be built
 */
export async function buildCommit(root: string, commit: string, folder: string): Promise<void> {
  mkdirSync(folder)
  const archive = execa('git', ['archive', '--format=tar', commit], { cwd: root, buffer: false })
  await Promise.all([pipeline(archive.stdout, extract({ cwd: folder })), archive])
  const lock = (of: string): string => readFileSync(join(of, 'package-lock.json'), 'utf8')
  const npm = (...args: string[]): Promise<unknown> => execa('npm', args, { cwd: folder, all: true })
  try {
    if (lock(root) === lock(folder)) symlinkSync(join(root, 'node_modules'), join(folder, 'node_modules'))
    else await npm('ci', '--no-audit', '--no-fund')
    await npm('run', '--silent', 'build')
  } catch (error) {
    const said = error instanceof Error ? error.message : String(error)
    process.stderr.write(`${said}\n`)
    throw new NothingBefore(`the state before, ${commit.slice(0, 10)}, cannot be built`)
  }
}

/** Whether two checkouts, both built, install the same files. */
export async function installsTheSame(one: string, other: string): Promise<boolean> {
  for (const name of INSTALLED) {
    const paths = [join(one, name), join(other, name)]
    if (!paths.every((path) => existsSync(path))) return false
    const { exitCode } = await execa('git', ['diff', '--no-index', '--quiet', ...paths], { reject: false })
    if (exitCode !== 0) return false
  }
  return true
}
