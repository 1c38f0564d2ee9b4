import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

/** What the tests of one run said. */
export interface JestResult {
  readonly passed: number
  /** Full names of the tests that failed. */
  readonly failed: readonly string[]
  /** Why there is no result of a test file. */
  readonly error?: string
  /** Of the whole run. */
  readonly seconds: number
  /** Of the slowest test, or of all hooks of a file together if they took longer. */
  readonly slowestSeconds: number
}

/** Milliseconds. */
export interface RunLimits {
  /** For the whole run, which is ended then: an error, but the tests that have failed by then are named. */
  readonly run: number
  /** For one test or hook. Default: that of jest.config.mjs. */
  readonly test?: number
}

interface Report {
  testResults: {
    name: string
    message: string
    startTime: number
    endTime: number
    assertionResults: { status: string; fullName: string; duration?: number | null }[]
  }[]
}

/** Runs jest in a folder, in a process group and with a TMPDIR of its own; both are gone at the end. */
export async function runJest(
  folder: string,
  files: readonly string[],
  title: string | undefined,
  limits: RunLimits,
): Promise<JestResult> {
  const began = performance.now()
  const work = await mkdtemp(join(tmpdir(), 'tsts-mutant-'))
  const report = join(work, 'report.json')
  const temp = join(work, 'tmp')
  const failures = join(work, 'failures')
  await mkdir(temp)
  await writeFile(failures, '')
  const jest = ['--experimental-vm-modules', 'node_modules/jest/bin/jest.js', '--runInBand', '--forceExit']
  const cache = `--cacheDirectory=${join(folder, '.build', 'jest')}`
  const reporters = ['support/retries', 'mutants/failures'].map(
    (name) => `--reporters=./tests/${name}-reporter.mjs`,
  )
  const wait = limits.test === undefined ? [] : [`--testTimeout=${limits.test}`]
  const pattern = title === undefined ? [] : ['-t', title]
  const output = ['--json', `--outputFile=${report}`, '--runTestsByPath']
  const child = spawn(
    process.execPath,
    [...jest, cache, ...reporters, ...wait, ...pattern, ...output, ...files],
    {
      cwd: folder,
      env: { ...process.env, NODE_OPTIONS: '', TMPDIR: temp, FAILED_TESTS_FILE: failures },
      stdio: 'ignore',
      detached: true,
    },
  )
  let late = false
  const limit = setTimeout(() => {
    late = true
    endGroup(child.pid!)
  }, limits.run)
  try {
    await once(child, 'close')
    const seconds = (performance.now() - began) / 1000
    const text = await readFile(report, 'utf8').catch(() => undefined)
    if (!late && text !== undefined) return { ...resultOf(JSON.parse(text) as Report), seconds }
    const lines = (await readFile(failures, 'utf8')).split('\n').filter((line) => line !== '')
    const failed = lines.map((line) => JSON.parse(line) as string)
    const error = late ? `not done after ${limits.run / 1000} s` : 'jest ended without a report'
    return { passed: 0, failed, error, seconds, slowestSeconds: seconds }
  } finally {
    clearTimeout(limit)
    endGroup(child.pid!)
    await rm(work, { recursive: true, force: true, maxRetries: 5 })
  }
}

function resultOf({ testResults }: Report): Omit<JestResult, 'seconds'> {
  const tests = testResults.flatMap(({ assertionResults }) => assertionResults)
  const unread = testResults.find(({ assertionResults, message }) => assertionResults.length === 0 && message)
  const slowest = testResults.map(({ startTime, endTime, assertionResults }) => {
    const durations = assertionResults.map(({ duration }) => duration ?? 0)
    const inTests = durations.reduce((sum, duration) => sum + duration, 0)
    return Math.max(endTime - startTime - inTests, ...durations)
  })
  return {
    slowestSeconds: Math.max(0, ...slowest) / 1000,
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
