import { readFileSync, writeFileSync } from 'node:fs'
import { delimiter, join } from 'node:path'
import { promisify } from 'node:util'
import { call, inferenceClient } from '../grpc-clients.ts'
import { rawRequest } from '../raw-http.ts'
import { packPython, type PythonArchive } from './archive.ts'
import type { TestPython } from './environments.ts'
import type { InferencePorts } from './exchanges.ts'

const FOLDER = join(import.meta.dirname, '..', '..', 'workers', 'python', 'otf')
const RECORDER = join(FOLDER, 'record_frontend.py')
/**
 * What TorchServe 0.12.0 sent to its worker for {@link sendRequests}; tests/torch/recording.test.ts records
 * and checks it.
 */
const RECORDED_FRAMES = join(FOLDER, 'recorded-requests.json')

/** TorchServe answers REST before it listens for gRPC. */
const GRPC_START_MS = 20_000
const ONE = 'minWorkers: 1\nmaxWorkers: 1\n'
/** The runtime python3 is what is called so on PATH: there the recorder is. */
const MODELS: readonly PythonArchive[] = [
  archive('one', ONE),
  archive('two', `${ONE}batchSize: 2\nmaxBatchDelay: 60000\n`),
  archive('steps', `${ONE}batchSize: 2\nmaxBatchDelay: 100\ncontinuousBatching: true\n`),
]
export const FRAME_MODELS = MODELS.map(({ name }) => name)

function archive(name: string, config: string): PythonArchive {
  return { name, handler: 'def handle(data, context):\n    pass\n', config, flags: ['--runtime', 'python3'] }
}

export async function packFrameModels(python: TestPython, store: string): Promise<void> {
  for (const model of MODELS) await packPython(python, store, model)
}

/** Variables of a server whose workers record what they get. @param folder for the recording */
export function recorderEnv({ python }: TestPython, folder: string): Record<string, string> {
  const shim = join(folder, 'python3')
  writeFileSync(shim, `#!/bin/sh\nexec '${python}' '${RECORDER}' "$@"\n`, { mode: 0o755 })
  return {
    PATH: [folder, process.env['PATH']].join(delimiter),
    RECORDER: shim,
    RECORD_FILE: join(folder, 'frames'),
  }
}

/**
 * Requests of every kind, one after the other.
 * @param waits resolves when one request waits for the batch of the model `two`
 */
export async function sendRequests(
  { inference, management, grpcInference }: InferencePorts,
  waits: () => Promise<unknown>,
): Promise<void> {
  const post = (path: string, body: string, headers: Record<string, string> = {}) =>
    rawRequest(inference, path, { body, headers })
  const part = (head: string, body: string): string =>
    `--b\r\nContent-Disposition: form-data; ${head}\r\n\r\n${body}\r\n`
  await post('/predictions/one', '{"ä": 1}', {
    'Content-Type': 'application/json; charset=utf-8',
    'X-Mine': 'Some Value',
  })
  await post(
    '/predictions/one',
    `${part('name="file"; filename="f"\r\nContent-Type: text/plain', 'hello')}${part('name="field"', 'x')}--b--\r\n`,
    { 'content-type': 'multipart/form-data; boundary=b' },
  )
  await post('/predictions/one', 'a=1&b=%20x', { 'content-type': 'application/x-www-form-urlencoded' })
  await post('/predictions/one/1.0', '')
  await post('/predictions/one/1.0/v1/chat', 'x', { 'content-type': 'text/plain' })
  await post('/explanations/one', 'x')
  await post('/invocations?model_name=one&more=2', 'x')
  await rawRequest(management, '/models/one?customized=true', { method: 'GET' })
  const client = inferenceClient(grpcInference)
  await promisify(client.waitForReady.bind(client))(Date.now() + GRPC_START_MS)
  const input = { first: Buffer.of(0, 255), second: Buffer.from('x') }
  await call(client, client.Predictions, { model_name: 'one', input })
  client.close()
  const first = post('/predictions/two', 'first')
  await waits()
  await Promise.all([first, post('/predictions/two', 'second')])
  await post('/predictions/steps', 'x')
}

/** What the recorder wrote, by model, as base64. */
export type Frames = Readonly<Record<string, readonly string[]>>

export function recordedFrames(env: Readonly<Record<string, string>>): Frames {
  const lines = readFileSync(env['RECORD_FILE']!, 'utf8').trim().split('\n')
  const all = lines.map((line) => JSON.parse(line) as { model: string; frame: string })
  return Object.fromEntries(
    FRAME_MODELS.map((name) => [name, all.filter(({ model }) => model === name).map(({ frame }) => frame)]),
  )
}

export function readFrames(): Frames {
  return JSON.parse(readFileSync(RECORDED_FRAMES, 'utf8')) as Frames
}

export function writeFrames(frames: Frames): void {
  writeFileSync(RECORDED_FRAMES, `${JSON.stringify(frames, null, 2)}\n`)
}
