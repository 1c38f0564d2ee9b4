import { existsSync } from 'node:fs'
import { mkdir, readFile, rm } from 'node:fs/promises'
import { delimiter, join } from 'node:path'
import { REPOSITORY } from './places.ts'
import type { Result } from './result.ts'
import type { Workspace } from './workspace.ts'
import { execa } from '../support/tools.ts'

const FILE_LIMIT_MS = 1_200_000
const TEST_LIMIT_S = 240
const FLAGS = [
  ...['-p', 'conformance_report', '-p', 'absent_modules', `--timeout=${TEST_LIMIT_S}`],
  // An assertion that breaks in a thread of a test is only a warning otherwise.
  ...['-W', 'error::pytest.PytestUnhandledThreadExceptionWarning'],
]

interface ReportLine {
  test: string
  outcome: 'passed' | 'failed' | 'skipped'
  reason: string
}

/** Generates the gRPC modules that the tests import, as ts_scripts/regression_utils.py does. */
export async function generateStubs(space: Workspace): Promise<void> {
  const protos = join(space.checkout, 'frontend/server/src/main/resources/proto')
  await execa(
    join(space.venvBin, 'python'),
    [
      ...['-m', 'grpc_tools.protoc', `--proto_path=${protos}`, `--proto_path=${join(REPOSITORY, 'proto')}`],
      ...[
        '--python_out=.',
        '--grpc_python_out=.',
        join(protos, 'inference.proto'),
        join(protos, 'management.proto'),
      ],
    ],
    { cwd: join(space.checkout, 'test', 'pytest') },
  )
}

/**
 * Runs one file. A failed test runs a second time by itself, because some tests read a log file right after a
 * response, which a busy machine may not have written yet. The report names tests that took two runs.
 */
export async function runPytest(
  file: string,
  space: Workspace,
  absent: readonly string[],
): Promise<Result[]> {
  const results = await runOnce(file, [], space, absent)
  const broken = results.filter(({ outcome, test }) => outcome === 'failed' && test.startsWith('test_'))
  if (broken.length === 0) return results
  const names = broken.map(({ test }) => test)
  const passed = (await runOnce(file, names, space, absent)).filter(({ outcome }) => outcome === 'passed')
  return results.map((result) => {
    const second = passed.find(({ test }) => test === result.test)
    return second === undefined
      ? result
      : { ...second, reason: `at the second try; at first ${result.reason}` }
  })
}

/** In a process of its own, with an empty workspace folder. @param tests none: all of the file */
async function runOnce(
  file: string,
  tests: readonly string[],
  space: Workspace,
  absent: readonly string[],
): Promise<Result[]> {
  await clean(space)
  const name = tests.length === 0 ? file : `${file}.again`
  const report = join(space.reports, `${name}.jsonl`)
  const env = {
    ...space.env,
    PYTHONPATH: [space.python, join(space.checkout, 'model-archiver'), space.checkout].join(delimiter),
    CONFORMANCE_REPORT: report,
    CONFORMANCE_ABSENT: absent.join(','),
  }
  const targets = tests.length === 0 ? [`${file}.py`] : tests.map((test) => `${file}.py::${test}`)
  const { exitCode, timedOut } = await execa('python', ['-m', 'pytest', ...FLAGS, ...targets], {
    cwd: join(space.checkout, 'test', 'pytest'),
    env,
    extendEnv: false,
    reject: false,
    timeout: FILE_LIMIT_MS,
    stdin: 'ignore',
    stdout: { file: join(space.reports, `${name}.log`) },
    stderr: { file: join(space.reports, `${name}.err`) },
  })
  await execa('torchserve', ['--stop'], { env, extendEnv: false, reject: false })
  const results = await readReport(file, report)
  if (timedOut || results.length === 0)
    results.push({ suite: file, test: '(file)', outcome: 'failed', reason: `pytest ended with ${exitCode}` })
  return results
}

/** `workspace` is where test_utils.py keeps its model store. */
async function clean(space: Workspace): Promise<void> {
  await rm(space.temp, { recursive: true, force: true })
  await mkdir(join(space.temp, 'workspace', 'model_store'), { recursive: true })
  await rm(join(space.checkout, 'test', 'pytest', 'logs'), { recursive: true, force: true })
}

async function readReport(suite: string, path: string): Promise<Result[]> {
  if (!existsSync(path)) return []
  const lines = (await readFile(path, 'utf8')).trim().split('\n')
  return lines.map((line) => toResult(suite, JSON.parse(line) as ReportLine))
}

/** A test that was not run has shown nothing. */
function toResult(suite: string, { test, outcome, reason }: ReportLine): Result {
  return outcome === 'passed' ? { suite, test, outcome } : { suite, test, outcome: 'failed', reason }
}
