import { setTimeout as wait } from 'node:timers/promises'
import { beforeAll, expect, test } from '@jest/globals'
import { packPython } from '../support/python/archive.ts'
import {
  EXCHANGES,
  exchange,
  exchangeName,
  type Exchange,
  type SeenAnswer,
} from '../support/python/exchanges.ts'
import { PYTHON_MODELS } from '../support/python/models.ts'
import { readRecording, writeRecording } from '../support/python/recording.ts'
import { standInPython } from '../support/python/environments.ts'
import { describePython, type TestPython } from '../support/python/test-python.ts'
import {
  FRAME_MODELS,
  packFrameModels,
  readFrames,
  recordedFrames,
  recorderEnv,
  sendRequests,
  writeFrames,
  type Frames,
} from '../support/python/sent-frames.ts'
import { hasJava, TorchServe } from '../support/python/torchserve.ts'
import { tempDir } from '../support/temp.ts'
import { packTorchModels, TORCH_EXCHANGES } from './models.ts'

const java = await hasJava()
const ALL = [...EXCHANGES, ...TORCH_EXCHANGES]

/**
 * Records what TorchServe answers, with which our server is compared. UPDATE_RECORDING=1 records it again.
 */
await describePython('the recording of TorchServe’s answers', (python) => {
  const answers: Record<string, SeenAnswer> = {}

  beforeAll(async () => {
    if (!java) return
    const store = tempDir()
    // Without PyTorch their workers start quickly.
    const light = (await standInPython())!
    for (const model of PYTHON_MODELS) await packPython(light, store, model)
    await record(
      light,
      store,
      PYTHON_MODELS.map(({ name }) => name),
      EXCHANGES,
    )
    const torchStore = tempDir()
    await record(python, torchStore, await packTorchModels(python, torchStore), TORCH_EXCHANGES)
    if (process.env['UPDATE_RECORDING'] === '1') writeRecording(answers)
  }, 600_000)

  async function record(
    environment: TestPython,
    store: string,
    models: readonly string[],
    requests: readonly Exchange[],
  ): Promise<void> {
    const torchserve = await TorchServe.start(environment, store, tempDir(), models)
    try {
      for (const request of requests)
        answers[exchangeName(request)] = await exchange(request, torchserve.ports)
    } finally {
      await torchserve.stop()
    }
  }

  const each = java ? test.each(ALL.map(exchangeName)) : test.skip.each(['needs Java'])
  each('%s', (name) => {
    expect(readRecording()[name]).toEqual(answers[name])
  })
})

/**
 * Records what TorchServe sends to its worker; tests/python/frames.test.ts compares our frontend's frames
 * with it.
 */
await describePython('the recording of TorchServe’s requests to its worker', () => {
  const recorded = java ? test : test.skip
  recorded('is what it sends', async () => {
    const light = (await standInPython())!
    const [store, folder] = [tempDir(), tempDir()]
    await packFrameModels(light, store)
    const env = recorderEnv(light, folder)
    const torchserve = await TorchServe.start(light, store, tempDir(), FRAME_MODELS, env)
    try {
      await sendRequests(torchserve.ports, () => wait(500)) // TorchServe's describe does not tell
    } finally {
      await torchserve.stop()
    }
    const frames = recordedFrames(env)
    if (process.env['UPDATE_RECORDING'] === '1') writeFrames(frames)
    const sizes = (all: Frames) => Object.values(all).map((of) => of.length)
    expect(sizes(frames)).toEqual(sizes(readFrames()))
  })
})
