import { beforeAll, describe, expect, test } from '@jest/globals'
import { joinHeaders } from '../../common/headers.ts'
import { encodeLoad, encodePredict } from '../../frontend/workers/python/otf/encode.ts'
import { readFrame, type Frame } from '../workers/python/otf/read-frame.ts'
import { allReady, PYTHON_MS } from '../support/python/client.ts'
import {
  FRAME_MODELS,
  packFrameModels,
  readFrames,
  recordedFrames,
  recorderEnv,
  sendRequests,
  type Frames,
} from '../support/python/sent-frames.ts'
import { describePython } from '../support/python/test-python.ts'
import { startServer } from '../support/server.ts'
import { tempDir } from '../support/temp.ts'

const RECORDED = Object.values(readFrames())
  .flat()
  .map((frame) => Buffer.from(frame, 'base64'))

describe('frames that TorchServe’s own frontend sent', () => {
  test('are, byte by byte, what our codec makes of what they say', () => {
    const kinds = { load: 0, predict: 0 }
    for (const bytes of RECORDED) {
      const frame = readFrame(bytes)
      kinds['load' in frame ? 'load' : 'predict'] += 1
      expect(encoded(frame)).toEqual(bytes)
    }
    expect(kinds).toEqual({ load: 3, predict: 12 })
  })
})

function encoded(frame: Frame): Buffer {
  if ('load' in frame) return encodeLoad(frame.load)
  return encodePredict(
    frame.requests.map(({ requestId, headers, parts }) => {
      return { requestId, headers: joinHeaders(Object.fromEntries(headers)), parts }
    }),
  )
}

await describePython('The frames of a started server', (python) => {
  let frames: Frames

  beforeAll(async () => {
    const [store, folder] = [tempDir(), tempDir()]
    await packFrameModels(python, store)
    const env = recorderEnv(python, folder)
    const server = await startServer({ modelStore: store, models: ['all'], env })
    await allReady(server, FRAME_MODELS)
    const waiting = async () => (await server.describe('two'))[0]!.jobQueueStatus.pendingRequests
    await sendRequests(server.ports, () => server.until(waiting, (count) => count === 1))
    await server.stop()
    frames = recordedFrames(env)
  }, PYTHON_MS)

  test.each(FRAME_MODELS)('%s: say the same as TorchServe’s, request by request', (model) => {
    expect(frames[model]!.map(shown)).toEqual(readFrames()[model]!.map(shown))
  })
})

/**
 * Removes what differs in every run: ids, ports, folders. The order of headers has no meaning for the worker.
 * Also removes the two known differences: gRPC metadata are headers here, and a describe has no headers of
 * the management request.
 */
function shown(frame: string): unknown {
  const read = readFrame(Buffer.from(frame, 'base64'))
  if ('load' in read) return { ...read.load, modelDir: 'folder' }
  const names = new Map(read.requests.map(({ requestId }, i) => [requestId, `id ${i}`]))
  return read.requests.map(({ requestId, headers, parts }) => ({
    requestId: names.get(requestId),
    headers: Object.fromEntries(
      headers
        .filter(([name], _, all) => name !== 'user-agent' && (name === 'describe' || !isDescribe(all)))
        .map(([name, value]) => [name, names.get(value) ?? value.replace(/^127\.0\.0\.1:\d+$/, 'address')]),
    ),
    parts: parts.map(({ name, contentType, data }) => [name, contentType, data.toString('latin1')]),
  }))
}

function isDescribe(headers: readonly [string, string][]): boolean {
  return headers.some(([name]) => name === 'describe')
}
