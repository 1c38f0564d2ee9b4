import { createHash } from 'node:crypto'
import { existsSync } from 'node:fs'
import { mkdir, readFile, rm, writeFile } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { BUILD } from './places.ts'
import { execa } from '../support/tools.ts'

const CLIENTS = ['tritonclient[http,grpc]==2.73.0', 'kserve==0.21.0', 'httpx==0.28.1', 'httpx-sse==0.4.3']
const OPENAI_PYTHON = 'openai==3.54.0'
/** In an environment of its own, because it requires other versions than kserve. */
const MLSERVER = ['mlserver==1.7.1', 'httpx==0.28.1', 'httpx-sse==0.4.3']
const NODE = [
  'openai@6.49.0',
  'ai@6.0.326',
  '@ai-sdk/openai-compatible@2.0.92',
  '@langchain/openai@1.5.8',
  '@langchain/core@1.4.0',
  'zod@4.6.7',
]
const LIMIT_MS = 900_000

/** Holds what was installed; written last, so that a broken or older installation is made again. */
const DONE = join(BUILD, 'done')

const PYTHON = pythonIn('venv')
const MLSERVER_PYTHON = pythonIn('mlserver')
/** A folder in whose node_modules the clients for Node are. */
export const NODE_FOLDER = join(BUILD, 'node')

/** Installs the clients into .build once. @throws Error with the installer's output */
export async function install(): Promise<void> {
  const packages = [...CLIENTS, OPENAI_PYTHON, ...MLSERVER, ...NODE]
  const wanted = createHash('sha256').update(packages.join('\n')).digest('hex')
  if (existsSync(DONE) && (await readFile(DONE, 'utf8')) === wanted) return
  await rm(BUILD, { recursive: true, force: true })
  await mkdir(NODE_FOLDER, { recursive: true })
  console.log(`Installing ${packages.join(', ')} ...`)
  await environment(PYTHON, [...CLIENTS, OPENAI_PYTHON])
  await environment(MLSERVER_PYTHON, MLSERVER)
  await writeFile(join(NODE_FOLDER, 'package.json'), '{ "private": true, "type": "module" }\n')
  const flags = ['--no-audit', '--no-fund', '--ignore-scripts', '--prefix', NODE_FOLDER]
  await execa('npm', ['install', ...flags, ...NODE], { timeout: LIMIT_MS })
  await writeFile(DONE, wanted)
}

/** The interpreter for a program: MLServer's has its package. */
export function pythonFor(program: string): string {
  return basename(program).startsWith('mlserver_') ? MLSERVER_PYTHON : PYTHON
}

function pythonIn(environment: string): string {
  return join(BUILD, environment, 'bin', 'python')
}

async function environment(python: string, packages: readonly string[]): Promise<void> {
  await execa('python3', ['-m', 'venv', dirname(dirname(python))], { timeout: LIMIT_MS })
  const flags = ['-m', 'pip', 'install', '--quiet', '--disable-pip-version-check', '--no-compile']
  await execa(python, [...flags, ...packages], { timeout: LIMIT_MS })
}
