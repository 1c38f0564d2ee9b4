import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from '@jest/globals'
import { describeExit } from '../../../frontend/workers/exit-cause.ts'
import { startError } from '../../../frontend/workers/python/load-error.ts'
import { Tracebacks } from '../../../frontend/workers/python/tracebacks.ts'
import { tempDir } from '../../support/temp.ts'

const BEGIN = 'Traceback (most recent call last):'

/** A model with some files in folders. */
const modelDir = tempDir()
for (const folder of ['src', 'lib/tools']) mkdirSync(join(modelDir, folder), { recursive: true })
for (const file of ['src/kit.py', 'lib/tools/__init__.py']) writeFileSync(join(modelDir, file), '')

function told(...lines: string[]): string | undefined {
  return toldOf('handler.py', ...lines)
}

function toldOf(handler: string, ...lines: string[]): string | undefined {
  const tracebacks = new Tracebacks({ modelDir, handler })
  for (const line of lines) tracebacks.read(line)
  return tracebacks.told
}

test('of a chain it tells of the cause, with the innermost line of the model', () => {
  const cause = told(
    ...[BEGIN, '  File "/py/site-packages/ts/model_loader.py", line 108, in load'],
    ...[
      '    module = self._load_handler_file(handler)',
      '  File "/tmp/models/1/p/model-x/handler.py", line 3',
    ],
    ...['    import inner', '  File "/tmp/models/1/p/model-x/inner.py", line 9', '    1 / 0'],
    ...['  File "/usr/lib/python3.11/json/__init__.py", line 1', 'ZeroDivisionError: division by zero'],
    ...['', 'During handling of the above exception, another exception occurred:', '', BEGIN],
    ...['  File "<frozen importlib._bootstrap>", line 1140'],
    "ModuleNotFoundError: No module named 'ts.torch_handler.handler'",
  )
  expect(cause).toBe('ZeroDivisionError: division by zero (inner.py, line 9)')
})

test('the name of a failed assertion stands only in its traceback', () => {
  expect(told(BEGIN, '  File "/m/handler.py", line 9, in call5', '    assert False', 'AssertionError')).toBe(
    'An assertion failed (handler.py, line 9)',
  )
})

test('how TorchServe ends the worker is not the cause', () => {
  expect(told(BEGIN, 'ValueError: no', BEGIN, 'RuntimeError: 500 - Unknown exception')).toBe('ValueError: no')
})

test('a handler that the model lacks', () => {
  expect(told(BEGIN, "ModuleNotFoundError: No module named 'ts.torch_handler.handler'")).toMatch(
    /handler'\. The handler of the manifest is not in the model$/,
  )
})

test.each([
  ['src/kit.py', 'kit', 'src/kit.py'],
  ['handler.py', 'tools', 'lib/tools/__init__.py'],
  ['handler.py', 'tools.inner', 'lib/tools/__init__.py'],
])('the handler %s imports %s, which the model has in a folder', (handler, module, file) => {
  const said = toldOf(handler, BEGIN, `ModuleNotFoundError: No module named '${module}'`)
  const name = module.split('.')[0]!
  expect(said).toContain(
    `The model has ${file}: Python imports ${name} only from the top folder of the model`,
  )
  expect(said).not.toContain('pip')
})

test.each([
  ['src/gone.py:entry', 'gone'],
  ['model.mjs:M', 'model'],
  ['C', 'C'],
])('the handler %s is not in the model', (handler, module) => {
  const said = toldOf(handler, BEGIN, `ModuleNotFoundError: No module named '${module}'`)
  expect(said).toBe(
    `ModuleNotFoundError: No module named '${module}'. The handler of the manifest is not in the model`,
  )
})

test('a package of somebody else is to be installed', () => {
  expect(told(BEGIN, "ModuleNotFoundError: No module named 'numpy.linalg'")).toContain(
    'python -m pip install numpy. ',
  )
})

test('other output is no exception', () => {
  expect(told('Loading', 'ValueError: only a text')).toBeUndefined()
})

test.each([
  ['by itself', { exitCode: 1, signal: undefined }, 'ValueError: no', 'the handler threw while it loaded'],
  [
    'by a crash',
    { exitCode: undefined, signal: 'SIGSEGV' },
    'The process was killed by SIGSEGV',
    'its worker was killed by SIGSEGV while it loaded',
  ],
])('a process that ended %s after it printed an exception', (_, exit, message, publicCause) => {
  const cause = describeExit({
    ...exit,
    killed: false,
    spawnError: undefined,
    stderr: [],
    heapIsFull: false,
    fault: undefined,
  })
  expect(startError(cause, 'ValueError: no')).toMatchObject({ message, publicCause })
})
