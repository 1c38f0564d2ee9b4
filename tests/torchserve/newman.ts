import { existsSync } from 'node:fs'
import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Collection } from './collections.ts'
import { BUILD } from './places.ts'
import type { Result } from './result.ts'
import { execa } from '../support/tools.ts'

const VERSION = '6.2.2'
const FOLDER = join(BUILD, 'newman', VERSION)
const NEWMAN = join(FOLDER, 'node_modules', 'newman', 'bin', 'newman.js')
const LIMIT_MS = 600_000

interface Execution {
  readonly item: { readonly name: string }
  readonly cursor: { readonly iteration: number }
  readonly response?: { readonly code: number }
  readonly requestError?: { readonly message?: string; readonly code?: string }
  readonly assertions?: readonly {
    readonly assertion: string
    readonly error?: { readonly message: string }
  }[]
}

/** Installs newman into .build once. */
export async function installNewman(): Promise<void> {
  if (existsSync(NEWMAN)) return
  await mkdir(FOLDER, { recursive: true })
  await writeFile(join(FOLDER, 'package.json'), '{ "private": true }\n')
  await execa('npm', ['install', '--no-audit', '--no-fund', '--prefix', FOLDER, `newman@${VERSION}`])
}

/**
 * Runs a collection against the server on TorchServe's default ports.
 * @param cwd the folder `test` of a checkout
 * @throws Error when newman fails, or makes no request
 */
export async function runCollection(
  { name, file, data }: Collection,
  cwd: string,
  report: string,
): Promise<Result[]> {
  const flags = ['-e', 'postman/environment.json', '--insecure', '--suppress-exit-code', '--color', 'off']
  if (data !== undefined) flags.push('-d', `postman/${data}.json`)
  flags.push('-r', 'json', '--reporter-json-export', report)
  await execa(process.execPath, [NEWMAN, 'run', `postman/${file}.json`, ...flags], { cwd, timeout: LIMIT_MS })
  const items = data === undefined ? [] : await readItems(join(cwd, 'postman', `${data}.json`))
  const { run } = JSON.parse(await readFile(report, 'utf8')) as { run: { executions: Execution[] } }
  if (run.executions.length === 0) throw new Error('newman made no request')
  return run.executions.map((execution) => toResult(name, execution, items[execution.cursor.iteration]))
}

interface DataItem {
  test?: string
  model_name?: string
  workflow_name?: string
}

async function readItems(path: string): Promise<DataItem[]> {
  return JSON.parse(await readFile(path, 'utf8')) as DataItem[]
}

function toResult(suite: string, execution: Execution, item: DataItem = {}): Result {
  const subject = item.test ?? item.model_name ?? item.workflow_name
  const number = execution.cursor.iteration + 1
  const test = subject === undefined ? execution.item.name : `${number} ${subject}: ${execution.item.name}`
  const reason = problem(execution)
  return { suite, test, outcome: reason === undefined ? 'passed' : 'failed', reason }
}

/** A request without an answer or without a check proves nothing, so neither passes. */
function problem({ requestError, response, assertions = [] }: Execution): string | undefined {
  if (requestError !== undefined) return requestError.message ?? requestError.code ?? 'no answer'
  if (response === undefined) return 'no answer'
  if (assertions.length === 0) return 'nothing was checked'
  const broken = assertions.find(({ error }) => error !== undefined)
  return broken && `${broken.assertion}: ${broken.error!.message} (status ${response.code})`
}
