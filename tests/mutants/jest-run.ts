import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdir, mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

/** For one test. */
const WAIT_MS = 15_000

/** What the tests of one run said. */
export interface JestResult {
  readonly passed: number
  /** Full names of the tests that failed. */
  readonly failed: readonly string[]
  /** Why there is no result of a test file. */
  readonly error?: string
  readonly seconds: number
}

interface Report {
  testResults: {
    name: string
    message: string
    assertionResults: { status: string; fullName: string }[]
  }[]
}

/**
 * Runs jest in a folder, in a process group and with a TMPDIR of its own; both are gone at the end.
 * @param limitMs after so long the run is ended, which is an error
 */
export async function runJest(
  folder: string,
  files: readonly string[],
  title: string | undefined,
  limitMs: number,
): Promise<JestResult> {
  const began = performance.now()
  const work = await mkdtemp(join(tmpdir(), 'tsts-mutant-'))
  const report = join(work, 'report.json')
  const temp = join(work, 'tmp')
  await mkdir(temp)
  const jest = ['--experimental-vm-modules', 'node_modules/jest/bin/jest.js', '--runInBand', '--forceExit']
  const cache = `--cacheDirectory=${join(folder, '.build', 'jest')}`
  // Whoever waits for what a mutant withholds waits no longer.
  const wait = `--testTimeout=${WAIT_MS}`
  const pattern = title === undefined ? [] : ['-t', title]
  const output = ['--json', `--outputFile=${report}`, '--runTestsByPath']
  const child = spawn(process.execPath, [...jest, cache, wait, ...pattern, ...output, ...files], {
    cwd: folder,
    env: { ...process.env, NODE_OPTIONS: '', TMPDIR: temp },
    stdio: 'ignore',
    detached: true,
  })
  let late = false
  const limit = setTimeout(() => {
    late = true
    endGroup(child.pid!)
  }, limitMs)
  try {
    await once(child, 'close')
    const seconds = (performance.now() - began) / 1000
    if (late) return { passed: 0, failed: [], error: `not done after ${limitMs / 1000} s`, seconds }
    const text = await readFile(report, 'utf8').catch(() => undefined)
    if (text === undefined) return { passed: 0, failed: [], error: 'jest ended without a report', seconds }
    return { ...resultOf(JSON.parse(text) as Report), seconds }
  } finally {
    clearTimeout(limit)
    endGroup(child.pid!)
    await rm(work, { recursive: true, force: true, maxRetries: 5 })
  }
}

function resultOf({ testResults }: Report): Omit<JestResult, 'seconds'> {
  const tests = testResults.flatMap(({ assertionResults }) => assertionResults)
  const unread = testResults.find(({ assertionResults, message }) => assertionResults.length === 0 && message)
  return {
    passed: tests.filter(({ status }) => status === 'passed').length,
    failed: tests.filter(({ status }) => status === 'failed').map(({ fullName }) => fullName),
    error: unread && `${unread.name} did not run: ${unread.message}`,
  }
}

/** Servers and workers that a test left behind too. */
function endGroup(pid: number): void {
  try {
    process.kill(-pid, 'SIGKILL')
  } catch {
    // All of them have ended.
  }
}
