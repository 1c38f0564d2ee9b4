import { readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { beforeAll, describe, expect, test } from '@jest/globals'
import { produced } from '../support/count.ts'
import { call, type GrpcError, inferenceClient } from '../support/grpc-clients.ts'
import { RawRequest, rawRequest, type RawResponse } from '../support/raw-http.ts'
import { REPOSITORY, startServer, type Server } from '../support/server.ts'
import { json, WorkflowStore } from '../support/workflows.ts'
import { zipOf } from '../support/zip.ts'

/**
 * Functions of the test handler, each the second node of a workflow with its name, and what counts its
 * attempts.
 */
const SINGLES = {
  flaky: '{retry-attempts: 2}',
  refuse: '{retry-attempts: 2}',
  sleep: '{retry-attempts: 1, timeout-ms: 200}',
  speak: '{retry-attempts: 3}',
  about: '{}',
  answer404: '{}',
}

let server: Server
const store = new WorkflowStore()

beforeAll(async () => {
  server = await startServer({
    modelStore: join(REPOSITORY, 'model-store'),
    config: { workflow_store: store.folder, max_response_size: 100_000 },
  })
  await store.register(server, 'branches', 'dag: {pass: [left, right], left: [join], right: [join]}')
  await store.register(server, 'leaves', 'dag: {pass: [left, right]}')
})

async function register(name: string, spec: string): Promise<{ status: number; message: string }> {
  await store.pack(name, spec)
  const { status, json: answer } = await server.manage('POST', `/workflows?url=${name}.war`)
  return { status, message: answer.message ?? answer.status ?? '' }
}

function predict(workflow: string, value: unknown): Promise<RawResponse> {
  return rawRequest(server.ports.inference, `/wfpredict/${workflow}`, json(value))
}

function failure(response: RawResponse): unknown[] {
  const { code, type, message } = JSON.parse(response.body) as Record<string, unknown>
  return [response.status, code, type, message]
}

function nodeFailed(node: string): unknown[] {
  return [500, 500, 'InternalServerException', `Error executing ${node}`]
}

/** Everything in an answer but the name that was asked for. */
async function without(name: string, port: number, method: string, path: string): Promise<unknown[]> {
  const { status, body } = await rawRequest(port, path.replace('NAME', encodeURIComponent(name)), { method })
  return [status, body.replaceAll(name, 'NAME').replaceAll(encodeURIComponent(name), 'NAME')]
}

test('the functions of a workflow answer by name as a model that there is none of', async () => {
  const { inference, management, grpcInference } = server.ports
  const paths = [
    ...['/predictions/NAME', '/v2/models/NAME/infer'].map((path) => [inference, 'POST', path] as const),
    ...['/v2/models/NAME', '/v2/models/NAME/ready'].map((path) => [inference, 'GET', path] as const),
    [inference, 'OPTIONS', '/predictions/NAME'] as const,
    [management, 'GET', '/models/NAME'] as const,
    [management, 'GET', '/models/NAME/all'] as const,
    [management, 'PUT', '/models/NAME?min_worker=2'] as const,
    [management, 'PUT', '/models/NAME/1.0/set-default'] as const,
    [management, 'DELETE', '/models/NAME'] as const,
  ]
  for (const [port, method, path] of paths)
    expect([path, ...(await without('branches__(functions)', port, method, path))]).toEqual([
      path,
      ...(await without('branches__(nothing)', port, method, path)),
    ])
  const client = inferenceClient(grpcInference)
  const ask = (name: string) =>
    call(client, client.Predictions, { model_name: name, input: { data: Buffer.from('x') } }).then(
      () => undefined,
      (error: unknown) =>
        `${(error as GrpcError).code} ${(error as GrpcError).details.replaceAll(name, 'NAME')}`,
    )
  expect(await ask('branches__(functions)')).toEqual(await ask('branches__(nothing)'))
  expect(await ask('branches__(nothing)')).toBeDefined()
  client.close()
  expect((await predict('branches', { id: 'x', words: 'to be' })).status).toBe(200)
})

describe('a graph', () => {
  const order = { id: 'x', words: 'to be or not' }

  test('gives a node with several predecessors one input of each; what streams is joined', async () => {
    const answer = await predict('branches', order)
    expect(answer).toMatchObject({ status: 200, headers: { 'content-type': 'application/json' } })
    expect(answer.body).toBe('left={\n  "left": "to be or not"\n};right=tobeornot')
  })

  test('with several leaves answers a JSON object; what is no JSON stands there as text', async () => {
    const answer = await predict('leaves', order)
    expect(answer.headers['content-type']).toBe('application/json')
    expect(JSON.parse(answer.body)).toEqual({ left: { left: 'to be or not' }, right: 'tobeornot' })
  })

  test('with several leaves gives gRPC the same object as one message', async () => {
    const client = inferenceClient(server.ports.grpcInference)
    const input = { data: Buffer.from(JSON.stringify(order)) }
    const { prediction } = await call(client, client.Predictions, { model_name: 'leaves', input })
    expect(JSON.parse(prediction.toString())).toEqual({
      left: { left: 'to be or not' },
      right: 'tobeornot',
    })
    client.close()
  })

  test('runs branches side by side', async () => {
    const spec = `
models:
  a: {url: count}
  b: {url: count}
  c: {url: count}
  timeout-ms: 60000
dag: {a: [b, c]}
`
    await store.register(server, 'parallel', spec)
    // The inputs of b and c are the numbers that a counts: each fails on them, but at the same time.
    expect(failure(await predict('parallel', { n: 1, delay: 0 }))[0]).toBe(500)
    const asked = await Promise.all(
      ['b', 'c'].map((node) =>
        server.metric('ts_inference_requests_total', { model_name: `parallel__${node}` }),
      ),
    )
    expect(asked).toEqual([1, 1])
  })
})

describe('functions of a handler', () => {
  beforeAll(async () => {
    await Promise.all(
      Object.entries(SINGLES).map(([name, models]) =>
        store.register(server, name, `models: ${models}\ndag: {pass: [${name}]}`),
      ),
    )
  })

  test('run in one process, which was initialised once, and see the client’s headers', async () => {
    const options = json({ id: 'about' })
    const ask = () =>
      rawRequest(server.ports.inference, '/wfpredict/about', {
        ...options,
        headers: { ...options.headers, 'X-Animal': 'ox', ts_workflow_function: 'refuse' },
      })
    const [first, second] = await Promise.all([ask(), ask()])
    const about = JSON.parse(first.body) as Record<string, unknown>
    expect(about).toMatchObject({ initialized: 1, animal: 'ox', parts: ['body'] })
    expect(about['requestId']).toBe(`${first.headers['x-request-id']}/about`)
    expect((JSON.parse(second.body) as typeof about)['pid']).toBe(about['pid'])
  })

  test('stream when one of them is the only leaf', async () => {
    const answer = await predict('speak', { id: 'speech', words: 'one two three' })
    expect(answer.headers).toMatchObject({ 'content-type': 'text/plain', 'x-spoken': 'yes' })
    expect(answer.chunks.map(String)).toEqual(['one', 'two', 'three'])
    expect(answer.complete).toBe(true)
  })

  test('that fail are tried again', async () => {
    const answer = await predict('flaky', { id: 'twice', failures: 2 })
    expect([answer.status, answer.body]).toEqual([200, '{"id":"twice"}'])
  })

  test('that fail at every try fail the request with TorchServe’s words', async () => {
    expect(failure(await predict('flaky', { id: 'never', failures: 9 }))).toEqual(nodeFailed('flaky'))
    // Two of the test before, and three now.
    const tries = { model_name: 'flaky__(functions)', outcome: 'failed' }
    expect(await server.metric('torchserve_ts_requests_ended_total', tries)).toBe(5)
  })

  test('that reject the client’s input are not tried again', async () => {
    expect(failure(await predict('refuse', { id: 'bad' }))).toEqual(nodeFailed('refuse'))
    const tries = await server.metric('torchserve_ts_requests_ended_total', {
      model_name: 'refuse__(functions)',
      outcome: 'failed',
    })
    expect(tries).toBe(1)
  })

  test('that take too long are stopped, tried again, and fail the request', async () => {
    const asked = performance.now()
    expect(failure(await predict('sleep', { id: 'long' }))).toEqual(nodeFailed('sleep'))
    expect(performance.now() - asked).toBeGreaterThan(390)
    const timedOut = { model_name: 'sleep__(functions)', outcome: 'timed_out' }
    expect(await server.metric('torchserve_ts_requests_ended_total', timedOut)).toBe(2)
  })

  test('that break off after the first item break the stream, without another try', async () => {
    const answer = await predict('speak', { id: 'broken', words: 'well ! no' })
    expect(answer).toMatchObject({ status: 200, complete: false, body: 'well' })
  })

  test('that fail before the first item are tried again', async () => {
    expect(failure(await predict('speak', { id: 'mute', words: '! no' }))).toEqual(nodeFailed('speak'))
    const tries = { model_name: 'speak__(functions)', outcome: 'failed' }
    expect(await server.metric('torchserve_ts_requests_ended_total', tries)).toBe(5)
  })

  test('say the status of the answer when they are the leaf', async () => {
    const answer = await predict('answer404', { id: 'x' })
    expect([answer.status, answer.body]).toEqual([404, 'nothing'])
  })

  test('an output over max_response_size fails the request', async () => {
    const words = 'x'.repeat(99_000)
    expect((await predict('leaves', { id: 'fits', words: 'x' })).status).toBe(200)
    expect((await predict('leaves', { id: 'both', words })).status).toBe(500)
  })
})

describe('registering', () => {
  test('lists, describes and unregisters; functions are not among the models', async () => {
    const spec = `
models:
  min-workers: 1
  max-workers: 1
  batch-size: 2
  max-batch-delay: 5
  lm:
    url: count
dag:
  pass: [lm]
`
    expect(await register('whole', spec)).toEqual({
      status: 200,
      message: 'Workflow whole has been registered and scaled successfully.',
    })
    const listed = (await server.manage('GET', '/workflows')).json as unknown as { workflows: unknown[] }
    expect(listed.workflows).toContainEqual({ workflowName: 'whole', workflowUrl: 'whole.war' })
    expect((await server.manage('GET', '/workflows/whole')).json).toEqual([
      {
        workflowName: 'whole',
        workflowUrl: 'whole.war',
        minWorkers: 1,
        maxWorkers: 1,
        batchSize: 2,
        maxBatchDelay: 5,
        workflowDag: '{pass=[lm]}',
        archiveSha256: expect.stringMatching(/^[0-9a-f]{64}$/),
        archivePinned: false,
      },
    ])
    expect(await models()).toContain('whole__lm')
    expect((await models()).filter((name) => name.includes('functions'))).toEqual([])
    const { status, json: refused } = await server.manage('DELETE', '/models/whole__lm')
    expect([status, refused.message]).toEqual([
      409,
      'Model whole__lm is a node of the workflow whole: unregister the workflow, with DELETE /workflows/whole',
    ])
    expect(await models()).toContain('whole__lm')
    expect(await register('whole', spec)).toEqual({
      status: 409,
      message: 'Workflow whole is already registered.',
    })
    expect((await server.manage('DELETE', '/workflows/whole')).json).toEqual({
      status: 'Workflow "whole" unregistered',
    })
    expect(await models()).not.toContain('whole__lm')
    expect(failure(await predict('whole', {}))).toEqual([
      404,
      404,
      'WorkflowNotFoundException',
      'Workflow not found: whole',
    ])
  })

  test('under another name', async () => {
    await store.pack('original', 'dag: {pass: []}')
    const path = '/workflows?url=original.war&workflow_name=renamed&response_timeout=7&startup_timeout=60'
    expect((await server.manage('POST', path)).status).toBe(200)
    const answer = await predict('renamed', { id: 'x' })
    expect(answer.body).toBe('{"id":"x"}')
  })

  test.each([
    ['a cycle', 'dag: {pass: [left], left: [right], right: [left, join]}', /^loop exception$/],
    ['a larger cycle', 'dag: {pass: [a], a: [b], b: [c], c: [a]}', /^Not a valid DAG$/],
    ['two starts', 'dag: {pass: [join], left: [join]}', /^DAG should have only one start node$/],
    ['a self loop', 'dag: {pass: [pass]}', /^Self loop exception$/],
    ['no dag', 'models: {}', /dag must be a map/],
    ['no yaml', 'dag: {pass: [', /^Failed to parse yaml\./],
  ])('a specification with %s is a 400', async (_what, spec, message) => {
    writeFileSync(
      join(store.folder, 'bad.war'),
      await zipOf({ 'WAR-INF/MANIFEST.json': manifest('bad'), 'spec.yaml': spec, 'h.mjs': '' }),
    )
    const { status, json: answer } = await server.manage('POST', '/workflows?url=bad.war')
    expect(status).toBe(400)
    expect(answer.message).toMatch(message)
  })

  test('an archive whose names lead out of it is refused, and leaves nothing', async () => {
    const before = unpacked()
    writeFileSync(
      join(store.folder, 'evil.war'),
      await zipOf({ 'WAR-INF/MANIFEST.json': manifest('evil'), '../evil.txt': 'x' }),
    )
    const { status, json: answer } = await server.manage('POST', '/workflows?url=evil.war')
    expect(status).toBe(400)
    expect(answer.message).toContain('"../evil.txt" is refused')
    expect(unpacked()).toEqual(before)
  })

  test.each([
    ['/workflows?url=fake.war', 404, 'Workflow not found in workflow store: fake.war'],
    ['/workflows?url=..%2Ffake.war', 404, 'Relative path is not allowed in url: ../fake.war'],
    ['/workflows', 400, 'Parameter url is required.'],
    [
      '/workflows?url=http%3A%2F%2F127.0.0.1%3A1%2Fx.war',
      400,
      'Failed to download archive from: http://127.0.0.1:1/x.war: its address is loopback or private; ' +
        'the operator allows such addresses with allowed_urls or allow_private_urls=true',
    ],
  ])('POST %s is %i', async (path, status, message) => {
    const answer = await server.manage('POST', path)
    expect([answer.status, answer.json.message]).toEqual([status, message])
  })

  test('a node that cannot be registered fails the workflow, and the others are gone again', async () => {
    const before = await models()
    const folders = unpacked()
    const spec = `
models:
  good: {url: count}
  bad: {url: no-such.mar}
dag: {good: [bad], bad: [nosuch]}
`
    const { status, message } = await register('partly', spec)
    expect(status).toBe(500)
    expect(message).toMatch(/^Workflow partly has failed to register\. Failures: \[/)
    expect(message).toContain(
      'Workflow Node partly__bad failed to register. Details: Model not found at: no-such.mar',
    )
    expect(message).toContain('Failed to start workers for model partly__(functions) version: 1.0')
    expect(message).toContain('exports no function nosuch')
    expect(await models()).toEqual(before)
    expect(unpacked()).toEqual(folders)
    expect((await server.manage('GET', '/workflows/partly')).status).toBe(404)
    // The same name may be used by a good one.
    expect((await register('partly', 'dag: {pass: []}')).status).toBe(200)
  })

  test('other methods are not allowed', async () => {
    for (const [method, path] of [
      ['PUT', '/workflows'],
      ['DELETE', '/workflows'],
      ['PUT', '/workflows/branches'],
      ['POST', '/workflows/branches'],
    ] as const)
      expect([method, path, (await server.manage(method, path)).status]).toEqual([method, path, 405])
    expect((await server.manage('DELETE', '/workflows/none')).json).toMatchObject({
      code: 404,
      type: 'WorkflowNotFoundException',
      message: 'Workflow not found: none',
    })
  })

  /** The folders of all models and workflows. */
  function unpacked(): string[] {
    return readdirSync(join(server.folder, 'tmp', 'models')).sort()
  }

  async function models(): Promise<string[]> {
    const { json: answer } = await server.manage('GET', '/models')
    return answer.models!.map(({ modelName }) => modelName)
  }
})

function manifest(workflowName: string): string {
  const workflow = { workflowName, specFile: 'spec.yaml', handler: 'h.mjs' }
  return JSON.stringify({ createdOn: 'now', archiverVersion: '1', workflow })
}

describe('a server', () => {
  test('that stops lets a workflow finish, the steps that have not begun too, and leaves nothing', async () => {
    const spec = `
models:
  timeout-ms: 60000
  first: {url: ${join(REPOSITORY, 'model-store', 'count')}}
dag: {first: [after]}
`
    // Without a workflow store the archives are in the model store.
    const stopping = await startServer({ modelStore: store.folder, config: { allowed_urls: 'file://.*' } })
    await store.register(stopping, 'steps', spec)
    const request = new RawRequest(
      stopping.ports.inference,
      '/wfpredict/steps',
      json({ id: 'run', n: 30, delay: 20, stream: false }),
    )
    await stopping.until(
      () => produced(stopping, 'run', 'steps__first'),
      ({ items }) => items > 0,
    )
    const stopped = stopping.stop()
    const answer = await request.done
    expect([answer.status, answer.body]).toEqual([200, 'after 81'])
    expect(await stopped).toBe(0)
    expect(stopping.leftovers().filter((name) => name.startsWith('models/'))).toEqual([])
    expect(readdirSync(store.folder)).toContain('steps.war')
  })

  test('unregistering lets a running request finish', async () => {
    await store.register(server, 'leaving', 'models: {lm: {url: count}}\ndag: {pass: [lm]}')
    const request = new RawRequest(
      server.ports.inference,
      '/wfpredict/leaving',
      json({ id: 'last', n: 30, delay: 20 }),
    )
    await request.gotChunks(1)
    const gone = await server.manage('DELETE', '/workflows/leaving')
    expect(gone.status).toBe(200)
    expect((await request.done).chunks).toHaveLength(30)
    expect(readdirSync(store.folder)).toContain('leaving.war')
  })
})
