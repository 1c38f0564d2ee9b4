import { chmodSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from '@jest/globals'
import { findPython } from '../../frontend/workers/python/environment/environment.ts'
import { findOwnPython } from '../../frontend/workers/python/own-worker.ts'
import type { PreparedModel } from '../../model-archiver/prepare.ts'
import { describePython } from '../support/python/test-python.ts'
import { tempDir } from '../support/temp.ts'

/** A command that prints `text`, whatever its arguments. */
function fakePython(text: string, status = 0): string {
  const path = join(tempDir(), 'python')
  writeFileSync(path, `#!/bin/sh\ncat <<'END'\n${text}\nEND\nexit ${status}\n`)
  chmodSync(path, 0o755)
  return path
}

const answer = {
  python: '/opt/my python',
  version: '3.12.1',
  torchserve: '/opt/lib',
  torchserveVersion: '0.12.0',
  torch: '2.4.0',
  missing: [] as string[],
}

async function failure(python: string): Promise<string> {
  return findPython({ python, modelServerHome: undefined }).then(
    () => 'it was found',
    (error: unknown) => `${String((error as { code?: string }).code)}: ${(error as Error).message}`,
  )
}

test('what is missing is said with the command that installs it', async () => {
  const missing = { ...answer, torchserve: null, torch: null, missing: ['ts', 'torch', 'yaml'] }
  expect(await failure(fakePython(JSON.stringify(missing)))).toBe(
    "WORKER_START_FAILED: Python 3.12.1 at /opt/my python lacks what TorchServe's worker needs: torchserve, torch, pyyaml. " +
      'Install it with: "/opt/my python" -m pip install torchserve torch pyyaml ' +
      '(or name another Python in config.properties, key python).',
  )
})

test.each([
  [
    'there is none',
    () => '/nowhere/python',
    /No Python was found .*\/nowhere\/python: the command was not found.*python=/,
  ],
  ['it does not speak', () => fakePython('I am no Python'), /is not a Python interpreter/],
  ['it fails', () => fakePython('', 3), /No Python was found .*exited with code 3/],
])('one error says what to do when %s', async (_name, python, message) => {
  expect(await failure(python())).toMatch(message)
})

test('an interpreter is asked once, and again after a failure', async () => {
  const folder = tempDir()
  const counter = join(folder, 'asked')
  const python = join(folder, 'python')
  const write = (text: string): void => {
    writeFileSync(python, `#!/bin/sh\necho x >> ${counter}\ncat <<'END'\n${text}\nEND\n`)
    chmodSync(python, 0o755)
  }
  const settings = { python, modelServerHome: undefined }
  write('nothing')
  await expect(findPython(settings)).rejects.toThrow('is not a Python interpreter')
  write(JSON.stringify(answer))
  const [first, second] = await Promise.all([findPython(settings), findPython(settings)])
  expect(second).toEqual(first)
  expect(await findPython(settings)).toEqual(first)
  expect(readFileSync(counter, 'utf8')).toBe('x\nx\n')
})

test('a model that our worker runs has its interpreter asked and its handler read once', async () => {
  const folder = tempDir()
  const counter = join(folder, 'asked')
  const handler = join(folder, 'handler.py')
  writeFileSync(handler, 'def handle(data, context): pass\n')
  const found = JSON.stringify({ ...answer, torchserve: null, missing: ['ts'] })
  const python = fakePython(`${found}\nEND\necho x >> ${counter}\ncat <<'END'\n${found}`)
  const manifest = { model: { handler: 'handler.py' } }
  const model = { manifest, modelDir: folder, workDir: folder, runtime: 'python', modelConfig: {} }
  const prepared = model as unknown as PreparedModel
  const settings = { python, modelServerHome: undefined, serviceEnvelope: undefined }
  const first = await findOwnPython(settings, prepared)
  rmSync(handler)
  expect(first).toMatchObject({ python: answer.python })
  expect(await findOwnPython(settings, prepared)).toEqual(first)
  expect(readFileSync(counter, 'utf8')).toBe('x\n')
})

await describePython('with a real Python', ({ python, realTorch }) => {
  const settings = { python, modelServerHome: undefined }

  test('TorchServe and its version are found without importing anything', async () => {
    const found = await findPython(settings)
    expect(found.python).toBe(python)
    expect(found.version).toMatch(/^3\.\d+\.\d+$/)
    expect(found.torchserveVersion).toBe('0.12.0')
    expect(found.torch === undefined).toBe(!realTorch)
    expect(found.packages).toBeUndefined()
  })

  test('model_server_home comes before what is installed', async () => {
    const home = tempDir()
    mkdirSync(join(home, 'ts'))
    for (const file of ['__init__.py', 'model_service_worker.py']) writeFileSync(join(home, 'ts', file), '')
    writeFileSync(join(home, 'ts', 'version.txt'), '9.9.9\n')
    const found = await findPython({ python, modelServerHome: home })
    expect(found).toMatchObject({ torchserve: home, torchserveVersion: '9.9.9' })
  })

  test('a folder that only has the name ts is not TorchServe', async () => {
    const home = tempDir()
    mkdirSync(join(home, 'ts'))
    writeFileSync(join(home, 'ts', '__init__.py'), '')
    await expect(findPython({ python, modelServerHome: home })).rejects.toThrow(
      /needs: torchserve\. Install it with: .* -m pip install torchserve /,
    )
  })
})
