import { cpSync, mkdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { packPython, type PythonArchive } from '../support/python/archive.ts'
import type { Exchange } from '../support/python/exchanges.ts'
import type { TestPython } from '../support/python/test-python.ts'
import { tempDir } from '../support/temp.ts'
import { execa } from '../support/tools.ts'

const HANDLERS = join(import.meta.dirname, 'handlers')
const ONE = 'minWorkers: 1\nmaxWorkers: 1\n'

/** Packs the models that need PyTorch into a store. @returns their names */
export async function packTorchModels(python: TestPython, store: string): Promise<string[]> {
  const weights = join(tempDir(), 'weights')
  mkdirSync(weights)
  cpSync(HANDLERS, weights, { recursive: true })
  await execa(python.python, ['make_weights.py'], { cwd: weights, stdin: 'ignore' })
  const models = torchModels(weights)
  for (const model of models) await packPython(python, store, model)
  return models.map(({ name }) => name)
}

function torchModels(weights: string): PythonArchive[] {
  const tiny = { handler: handler('tiny'), config: ONE }
  const file = (name: string): string => join(weights, name)
  return [
    {
      ...{ name: 'tiny', ...tiny },
      flags: ['--serialized-file', file('tiny.pt'), '--model-file', file('tiny_model.py')],
    },
    { ...{ name: 'script', ...tiny }, flags: ['--serialized-file', file('tiny_script.pt')] },
    { name: 'tensors', handler: handler('tensors'), config: ONE },
  ]
}

/** A model whose worker is two processes of torchrun. */
export const RANKS: PythonArchive = {
  name: 'summed',
  handler: handler('summed'),
  config: `${ONE}deviceType: cpu\nparallelType: tp\ntorchrun:\n  nproc-per-node: 2\n`,
}

function handler(name: string): string {
  return readFileSync(join(HANDLERS, `${name}.py`), 'utf8')
}

const JSON_TYPE = 'application/json'

export const TORCH_EXCHANGES: readonly Exchange[] = [
  { model: 'tiny', type: JSON_TYPE, body: '[1, 2]' },
  { model: 'tiny', over: 'grpc', body: '[0.5, -1]' },
  { model: 'tiny', type: JSON_TYPE, body: '"no numbers"' },
  { model: 'script', type: JSON_TYPE, body: '[1, 2]' },
]
