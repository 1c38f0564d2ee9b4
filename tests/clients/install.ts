import { createHash } from 'node:crypto'
import { existsSync } from 'node:fs'
import { mkdir, readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { BUILD } from './places.ts'
import { execa } from '../support/tools.ts'

const UV = 'uv==0.13.9'
const LIMIT_MS = 900_000

/** Packages that are installed together. */
export interface Environment {
  /** Its folder in .build/clients. */
  readonly name: string
  readonly packages: readonly string[]
  readonly kind: 'python' | 'node'
}

/** Installs what the environment lacks. @throws Error with the installer's output */
export async function install({ name, packages, kind }: Environment): Promise<void> {
  const folder = folderOf(name)
  // Written last, so that a broken or older installation is made again.
  const done = join(folder, 'done')
  const wanted = createHash('sha256')
    .update([...packages, UV].join('\n'))
    .digest('hex')
  if (existsSync(done) && (await readFile(done, 'utf8')) === wanted) return
  await rm(folder, { recursive: true, force: true })
  await mkdir(folder, { recursive: true })
  console.log(`Installing ${packages.join(', ')} ...`)
  await (kind === 'python' ? installPython(folder, packages) : installNode(folder, packages))
  await writeFile(done, wanted)
}

/** The command that runs a program of the environment. */
export function interpreterOf({ name, kind }: Environment): string {
  return kind === 'python' ? join(folderOf(name), 'bin', 'python') : process.execPath
}

/** Of a Python environment: `bin` has its commands; of a Node environment: `node_modules` is in it. */
export function folderOf(environment: string): string {
  return join(BUILD, environment)
}

/** By uv, because pip tries versions of the dependencies of so many packages for several minutes. */
async function installPython(folder: string, packages: readonly string[]): Promise<void> {
  const python = join(folder, 'bin', 'python')
  await execa('python3', ['-m', 'venv', folder], { timeout: LIMIT_MS })
  const flags = ['-m', 'pip', 'install', '--quiet', '--disable-pip-version-check', '--no-compile']
  await execa(python, [...flags, UV], { timeout: LIMIT_MS })
  const uv = ['-m', 'uv', 'pip', 'install', '--quiet', '--python', python]
  await execa(python, [...uv, ...packages], { timeout: LIMIT_MS })
}

async function installNode(folder: string, packages: readonly string[]): Promise<void> {
  await writeFile(join(folder, 'package.json'), '{ "private": true, "type": "module" }\n')
  const flags = ['--no-audit', '--no-fund', '--ignore-scripts', '--prefix', folder]
  await execa('npm', ['install', ...flags, ...packages], { timeout: LIMIT_MS })
}
