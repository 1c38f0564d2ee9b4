import { cpSync, mkdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { beforeAll, expect, test } from '@jest/globals'
import { execa, execFileSync } from '../support/tools.ts'
import { REPOSITORY } from '../support/server.ts'
import { tempDir } from '../support/temp.ts'

const COMMANDS = ['bash', 'dirname', 'mktemp', 'rm', 'tee', 'grep', 'sort', 'head', 'tail', 'uname']
/** A command that passes every check; its test counts differ by command. */
const NPM = `#!/bin/sh
case "$*" in
  *bench*) echo "$SPEED"; exit "$SPEED_STATUS" ;;
  *gemma*) echo "FAILED the weather"; echo "2 passed, 1 failed" ;;
  *test:*|*soak*|*fuzz*) echo "2 passed, 0 failed" ;;
  *test*) echo "Tests:       1 skipped, 3 passed, 4 total" ;;
esac
`

let folder: string

beforeAll(() => {
  folder = tempDir()
  const bin = join(folder, 'bin')
  mkdirSync(bin)
  for (const name of COMMANDS)
    symlinkSync(
      execFileSync('sh', ['-c', `command -v ${name}`], { encoding: 'utf8' }).trim(),
      join(bin, name),
    )
  symlinkSync(process.execPath, join(bin, 'node'))
  writeFileSync(join(bin, 'npm'), NPM, { mode: 0o755 })
  for (const name of ['.ci', 'README.md', 'package.json'])
    cpSync(join(REPOSITORY, name), join(folder, name), { recursive: true })
})

/** The exit status and the last lines of a run with only the commands above and the variables of `env`. */
async function ciRun(env: Readonly<Record<string, string>>): Promise<[number | undefined, string]> {
  const PATH = join(folder, 'bin')
  const speed = { SPEED: 'no case has dropped', SPEED_STATUS: '0' }
  const options = { env: { PATH, TMPDIR: folder, ...speed, ...env }, extendEnv: false, reject: false }
  const { exitCode, stdout } = await execa(join(PATH, 'bash'), [join(folder, '.ci', 'run')], options)
  return [exitCode, stdout.slice(stdout.indexOf('== left out'))]
}

test('without Python the run fails and lists what it left out', async () => {
  const [status, end] = await ciRun({})
  expect(status).toBe(1)
  expect(end).toContain('gemma, clients, python, torchserve')
  expect(end).toContain('tests: 1 skipped')
  expect(end).toContain('console: its page in a browser; no Chromium in PATH')
  expect(end).toMatch(/\n\d+ passed, 1 failed$/)
})

test('without Python the run passes if the variable allows it, and still lists what it left out', async () => {
  const [status, end] = await ciRun({ ALLOW_NO_PYTHON: '1' })
  expect(status).toBe(0)
  expect(end).toContain('gemma, clients, python, torchserve')
  expect(end).toMatch(/\n\d+ passed, 0 failed$/)
})

test('with Python its tests run, and a failure among them fails the run, which names it', async () => {
  const python = join(folder, 'python-with-venv')
  writeFileSync(python, '#!/bin/sh\n', { mode: 0o755 })
  const [status, end] = await ciRun({ TORCH_PYTHON: python })
  expect(status).toBe(1)
  expect(end).toContain('set TORCHSERVE_TESTS to a checkout of pytorch/serve')
  expect(end).toMatch(/\n== failed\n {2}gemma: FAILED the weather\n\d+ passed, 1 failed$/)
})

const onLinux = process.platform === 'linux' ? test : test.skip

onLinux('a drop of the speed fails the run; where nothing can be said, the run says why', async () => {
  const dropped = { ALLOW_NO_PYTHON: '1', SPEED_STATUS: '1' }
  const [status, end] = await ciRun(dropped)
  expect(status).toBe(1)
  expect(end).toMatch(/\n== failed\n {2}speed: no case has dropped\n\d+ passed, 1 failed$/)
  const [leftOut, list] = await ciRun({ ...dropped, SPEED_STATUS: '3', SPEED: 'a shallow clone' })
  expect(leftOut).toBe(0)
  expect(list).toContain('  speed: a shallow clone\n')
})
