import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { Metadata } from '@grpc/grpc-js'
import { expect, test } from '@jest/globals'
import {
  call,
  type GrpcError,
  inferenceClient,
  inferenceV2Client,
  managementClient,
  openInferenceClient,
  readAll,
} from '../support/grpc-clients.ts'
import { writeApiKeys } from '../support/api-keys.ts'
import { rawRequest } from '../support/raw-http.ts'
import { CLI, startServer } from '../support/server.ts'
import { tempDir } from '../support/temp.ts'
import { execa } from '../support/tools.ts'

test.each([
  ['names the store that was searched, in one line', 'gone.mar', ''],
  ['names the archive that is meant', 'words', '; did you mean words.mar?'],
  ['names the archive with nearly the same name', 'wrods.mar', '; did you mean words.mar?'],
])('a start with a model that is not there %s', async (_what, name, hint) => {
  const folder = tempDir()
  const store = join(folder, 'store')
  mkdirSync(store)
  writeFileSync(join(store, 'words.mar'), '')
  const addresses = ['inference', 'management', 'metrics'].map((name) => `${name}_address=http://127.0.0.1:0`)
  const ports = ['inference', 'management'].map((name) => `grpc_${name}_port=0`)
  writeFileSync(join(folder, 'config.properties'), [...addresses, ...ports].join('\n'))
  const flags = ['--start', '--foreground', '--ncs', '--disable-token-auth', '--model-store', store]
  const env = { NODE_OPTIONS: '', TEMP: folder }
  const { exitCode, stderr } = await execa(process.execPath, [CLI, ...flags, '--models', name], {
    cwd: folder,
    env,
    reject: false,
  })
  expect([exitCode, stderr.split('\n')]).toEqual([
    1,
    [
      `torchserve-ts: Failed to load model: ${name}: Model not found at: ${name}, searched in the model store ${store}${hint}`,
    ],
  ])
})

/** A server with my_first_model, for the keys `some` and `all`, and secret_model, only for `all`. */
function startWithKeys(
  config: Record<string, string | number | boolean> = {},
): ReturnType<typeof startServer> {
  const folder = tempDir()
  writeFileSync(join(folder, 'handler.mjs'), 'export const handle = () => ["x"]\n')
  const file = writeApiKeys([
    { name: 'some', scopes: ['inference'], models: ['my_*'] },
    { name: 'all', scopes: ['inference', 'management'] },
  ])
  const models = [`my_first_model=${folder}`, `secret_model=${folder}`]
  return startServer({ models, config: { ...config, api_keys_file: file }, flags: [] })
}

test('the answer to a name that no model has names the nearest that its sender may use, on every dialect', async () => {
  const server = await startWithKeys()
  const ask = async (path: string, secret: string, body = 'x') => {
    const headers = { authorization: `Bearer tsk_${secret}`, 'content-type': 'application/json' }
    const {
      status,
      headers: got,
      body: text,
    } = await rawRequest(server.ports.inference, path, { headers, body })
    expect(status).toBe(404)
    return [got['x-hint'], text] as const
  }
  const hint = 'did you mean the model my_first_model?'
  const [torchserve, body] = await ask('/predictions/my-first-model', 'some')
  expect([torchserve, JSON.parse(body)]).toEqual([
    hint,
    { code: 404, type: 'ModelNotFoundException', message: 'Model not found: my-first-model' },
  ])
  expect((await ask('/v2/models/my.First.model/infer', 'some', '{"inputs":[]}'))[0]).toBe(hint)
  const openai = '{"model":"my-first-modle","prompt":"x"}'
  expect(await ask('/v1/completions', 'all', openai)).toEqual([
    hint,
    expect.stringContaining('"Model not found: my-first-modle; did you mean my_first_model?"'),
  ])
  expect((await ask('/predictions/secret-model', 'all'))[0]).toBe('did you mean the model secret_model?')
  expect((await ask('/predictions/secret-model', 'some'))[0]).toBeUndefined()
  expect((await ask('/predictions/nothing_like_it', 'all'))[0]).toBeUndefined()
  await server.stop()
})

test('over gRPC its message ends with that name, for unary calls and streams of every service', async () => {
  const server = await startWithKeys({
    ts_open_inference_protocol: true,
    open_inference_grpc_port: 0,
    triton_grpc_port: 0,
  })
  const { ports } = server
  const as = (name: string): Metadata => {
    const metadata = new Metadata()
    metadata.set('authorization', `Bearer tsk_${name}`)
    return metadata
  }
  const failed = (asked: Promise<unknown>): Promise<string> =>
    asked.then(
      () => 'no error',
      (error: unknown) => (error as GrpcError).details.split('\n')[0]!,
    )
  const meant = 'Model not found: my-first-modle; did you mean my_first_model?'
  const torchserve = inferenceClient(ports.grpcInference)
  const wrong = { model_name: 'my-first-modle', input: { data: Buffer.from('x') } }
  expect(await failed(call(torchserve, torchserve.Predictions, wrong, as('some')))).toBe(meant)
  const stream = await readAll(torchserve.StreamPredictions(wrong, as('some')))
  expect(stream.error?.details).toBe(`${meant}\norg.pytorch.serve.archive.model.ModelNotFoundException`)
  const sequences = torchserve.StreamPredictions2(as('some'))
  sequences.write({ ...wrong, sequence_id: 's' })
  sequences.end()
  expect((await readAll(sequences)).messages[0]!.status!.message).toBe(meant)
  const management = managementClient(ports.grpcManagement)
  const described = call(management, management.DescribeModel, { model_name: 'my-first-modle' }, as('all'))
  expect(await failed(described)).toBe(meant)
  const infer = { model_name: 'my-first-modle', inputs: [] }
  for (const kind of ['mlserver', 'triton'] as const) {
    const client = inferenceV2Client(kind === 'triton' ? ports.triton : ports.openInference, kind)
    expect(await failed(call(client, client['ModelInfer']!, infer, as('some')))).toBe(meant)
    const duplex = client.ModelStreamInfer(as('some'))
    duplex.write(infer)
    duplex.end()
    const { messages, error } = await readAll(duplex)
    expect(error?.details ?? messages[0]!['error_message']).toBe(meant)
    client.close()
  }
  const own = openInferenceClient(ports.grpcInference)
  expect(await failed(call(own, own['ModelInfer']!, infer, as('some')))).toBe(meant)
  const secret = { ...wrong, model_name: 'secret-model' }
  expect(await failed(call(torchserve, torchserve.Predictions, secret, as('all')))).toBe(
    'Model not found: secret-model; did you mean secret_model?',
  )
  expect(await failed(call(torchserve, torchserve.Predictions, secret, as('some')))).toBe(
    'Model not found: secret-model',
  )
  for (const client of [torchserve, management, own]) client.close()
  await server.stop()
})
