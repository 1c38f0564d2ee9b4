import { existsSync, mkdirSync, readFileSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { execa } from 'execa'
import { extract } from 'tar'

/** There is nothing to compare with; the message says why. Not a failure. */
export class NothingBefore extends Error {}

/** What users install, and what decides which packages it runs with. */
const INSTALLED = ['dist', 'configs', 'libexec', 'proto', 'package-lock.json']

/**
 * The commit with which this checkout is compared: on a branch the one where it left `origin/main` or
 * `main`. On main itself, its last commit where files have changed since, and else the commit before.
 * @param named a commit to take instead
 * @throws NothingBefore without a history
 */
export async function commitBefore(root: string, named = ''): Promise<string> {
  const git = async (...args: string[]): Promise<string | undefined> => {
    const { exitCode, stdout } = await execa('git', args, { cwd: root, reject: false })
    return exitCode === 0 ? stdout.trim() : undefined
  }
  const commit = (name: string): Promise<string | undefined> =>
    git('rev-parse', '--verify', '--quiet', `${name}^{commit}`)
  if (named !== '') {
    const found = await commit(named)
    if (found === undefined)
      throw new Error(`SPEED_BEFORE must be a commit of this repository, found ${named}`)
    return found
  }
  const head = await commit('HEAD')
  if (head === undefined) throw new NothingBefore('this is no Git repository with a commit')
  const main = (await commit('origin/main')) ?? (await commit('main'))
  if (main === undefined) throw new NothingBefore('there is neither origin/main nor main; set SPEED_BEFORE')
  const base = await git('merge-base', head, main)
  if (base === undefined) throw new NothingBefore('a shallow clone has no commit in common with main')
  if (base !== head || (await git('diff', '--quiet', 'HEAD')) === undefined) return base
  const parent = await commit('HEAD^')
  if (parent === undefined) throw new NothingBefore('this commit has none before it, or the clone is shallow')
  return parent
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
