import { afterAll, beforeAll, expect, test } from '@jest/globals'
import { packPython } from '../support/python/archive.ts'
import { EXCHANGES, exchange, exchangeName, type SeenAnswer } from '../support/python/exchanges.ts'
import { PYTHON_MODELS } from '../support/python/models.ts'
import { readRecording, writeRecording } from '../support/python/recording.ts'
import { describePython } from '../support/python/test-python.ts'
import { hasJava, TorchServe } from '../support/python/torchserve.ts'
import { tempDir } from '../support/temp.ts'
import { packTorchModels, TORCH_EXCHANGES } from './models.ts'

const java = await hasJava()
const ALL = [...EXCHANGES, ...TORCH_EXCHANGES]

/** What our server is compared with is what TorchServe answers. UPDATE_RECORDING=1 records it anew. */
await describePython('the recording of TorchServe’s answers', (python) => {
  let torchserve: TorchServe | undefined
  const answers: Record<string, SeenAnswer> = {}

  beforeAll(async () => {
    if (!java) return
    const store = tempDir()
    for (const model of PYTHON_MODELS) await packPython(python, store, model)
    const names = [...PYTHON_MODELS.map(({ name }) => name), ...(await packTorchModels(python, store))]
    torchserve = await TorchServe.start(python, store, tempDir(), names)
    for (const request of ALL) answers[exchangeName(request)] = await exchange(request, torchserve.ports)
    if (process.env['UPDATE_RECORDING'] === '1') writeRecording(answers)
  }, 300_000)

  afterAll(() => torchserve?.stop())

  const each = java ? test.each(ALL.map(exchangeName)) : test.skip.each(['needs Java'])
  each('%s', (name) => {
    expect(readRecording()[name]).toEqual(answers[name])
  })
})
