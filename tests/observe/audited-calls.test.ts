import { once } from 'node:events'
import { type IncomingMessage, request } from 'node:http'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import { join } from 'node:path'
import { expect, test } from '@jest/globals'
import { RateLimiter } from '../../frontend/auth/rate-limiter.ts'
import {
  createManagementApp,
  createInferenceApp,
  createMetricsApp,
} from '../../frontend/dialects/rest-apps.ts'
import { AuditLog } from '../../frontend/observe/logs/audit-log.ts'
import { startGrpc, token } from '../edge/grpc/start-grpc.ts'
import { call, inferenceV2Client, managementClient } from '../support/grpc-clients.ts'
import { ask, startRig } from '../support/http/rig.ts'
import { namedCallers } from '../support/named-callers.ts'
import { tempDir } from '../support/temp.ts'

const SECRET_URL = 'https://ci:hunter2@store.example/m.mar?X-Amz-Signature=abcdef'
const WHO = { name: 'ci', kind: 'api key' }

const ignore = (): void => undefined

function auditLog() {
  let text = ''
  const audit = new AuditLog({ write: (line) => void (text += line) })
  const take = (): Record<string, unknown>[] => {
    const lines = text.split('\n').slice(0, -1)
    text = ''
    return lines.map((line) => JSON.parse(line) as Record<string, unknown>)
  }
  return { audit, take, text: () => text }
}

function as(name: string, method = 'GET', body?: string): RequestInit {
  const authorization = `Bearer ${name}`
  if (body === undefined) return { method, headers: { authorization } }
  return { method, headers: { authorization, 'content-type': 'application/json' }, body }
}

test('each management call over REST has a line: who, what, outcome, and no secret', async () => {
  const { audit, take, text } = auditLog()
  const rig = await startRig(createManagementApp, { audit, authorizer: namedCallers({ ci: undefined }) })
  const ask1 = async (method: string, path: string, body?: string) => {
    const { headers } = await ask(rig, path, as('ci', method, body))
    expect(text()).not.toMatch(/hunter2|abcdef|Bearer/)
    const lines = take().filter(({ event }) => event === 'management')
    const common = {
      who: WHO,
      address: '127.0.0.1',
      protocol: 'rest',
      requestId: headers.get('x-request-id'),
    }
    for (const line of lines) expect(line).toMatchObject(common)
    expect(lines.every(({ time }) => /^\d{4}-\d\d-\d\dT.*Z$/.test(time as string))).toBe(true)
    return lines
  }
  const query = `url=${encodeURIComponent(SECRET_URL)}&model_name=m`
  const url = 'https://***@store.example/m.mar?X-Amz-Signature=***'
  const registered = { operation: 'register model', outcome: 'done', status: 200, model: 'm', url }
  expect(await ask1('POST', `/models?${query}`)).toMatchObject([registered])
  const body = JSON.stringify({ url: SECRET_URL, model_name: 'm' })
  expect(await ask1('POST', '/models', body)).toMatchObject([registered])
  expect(await ask1('PUT', '/models/m/2?min_worker=1')).toMatchObject([
    { operation: 'scale model', outcome: 'done', status: 202, model: 'm', version: '2' },
  ])
  expect(await ask1('DELETE', '/requests/none')).toMatchObject([
    { operation: 'cancel request', status: 404, code: 'REQUEST_NOT_FOUND', request: 'none' },
  ])
  expect(await ask1('PUT', '/models/m/2/set-default')).toMatchObject([
    { operation: 'set default version', outcome: 'done', status: 200, version: '2' },
  ])
  expect(await ask1('DELETE', '/models/m/1')).toMatchObject([
    { operation: 'unregister model', outcome: 'failed', status: 403, code: 'DEFAULT_VERSION', model: 'm' },
  ])
  expect(await ask1('POST', '/workflows?url=w.war&workflow_name=w')).toMatchObject([
    { operation: 'register workflow', workflow: 'w', url: 'w.war' },
  ])
  expect(await ask1('DELETE', '/workflows/w')).toMatchObject([
    { operation: 'unregister workflow', workflow: 'w' },
  ])
  expect(await ask1('GET', '/models')).toEqual([])
  const closed = await startRig(createManagementApp, { audit, enableModelApi: false })
  await ask(closed, `/models?${query}`, { method: 'POST' })
  expect(take()).toMatchObject([{ operation: 'register model', outcome: 'refused', code: 'API_DISABLED' }])
})

test('loading over V2, making a token, wrong tokens and limits have lines', async () => {
  const { audit, take } = auditLog()
  const authorizer = namedCallers({ ci: undefined, slow: { requestsPerSecond: 0.1 } })
  const limiter = new RateLimiter({ key: {} })
  const rig = await startRig(createInferenceApp, { audit, authorizer, limiter })
  await ask(rig, '/v2/repository/models/m/load', as('ci', 'POST'))
  expect(take()).toMatchObject([
    { event: 'management', operation: 'load model', outcome: 'done', model: 'm', who: WHO },
  ])
  await ask(rig, '/v1/models', as('nobody'))
  await ask(rig, `/predictions/m?url=${encodeURIComponent(SECRET_URL)}`)
  expect(take()).toMatchObject([
    { event: 'authentication', operation: 'GET /v1/models', outcome: 'refused', detail: 'not accepted' },
    {
      event: 'authentication',
      detail: 'no token',
      operation: expect.not.stringContaining('hunter2') as unknown,
    },
  ])
  await ask(rig, '/ping', as('slow'))
  await ask(rig, '/ping', as('slow'))
  expect(take()).toMatchObject([
    { event: 'limit', operation: 'GET /ping', code: 'RATE_LIMITED', who: { name: 'slow', kind: 'api key' } },
  ])
  const management = await startRig(createManagementApp, { audit, authorizer })
  await ask(management, '/token?type=inference', as('API'))
  await ask(management, '/token?type=inference', as('ci'))
  expect(take()).toMatchObject([
    {
      event: 'keys',
      operation: 'make inference token',
      outcome: 'done',
      who: { name: 'API', kind: 'token' },
    },
    {
      event: 'authentication',
      operation: 'make inference token',
      outcome: 'refused',
      code: 'INVALID_API_KEY',
    },
  ])
})

test('gRPC has the same lines', async () => {
  const { audit, take, text } = auditLog()
  const authorizer = namedCallers({ ci: undefined })
  const grpc = await startGrpc({ tritonGrpcPort: 0 }, { audit, authorizer })
  const { management, inference, bound } = grpc
  await call(management, management.RegisterModel, { url: SECRET_URL, model_name: 'm' }, token('ci'))
  expect(text()).not.toMatch(/hunter2|abcdef/)
  const common = {
    event: 'management',
    who: WHO,
    address: '127.0.0.1',
    protocol: 'grpc',
    outcome: 'done',
    status: 0,
  }
  expect(take()).toMatchObject([{ ...common, operation: 'register model', model: 'm' }])
  await call(management, management.ScaleWorker, { model_name: 'm', model_version: '2' }, token('ci'))
  await call(management, management.SetDefault, { model_name: 'm', model_version: '2' }, token('ci'))
  await call(management, management.UnregisterModel, { model_name: 'm' }, token('ci'))
  await call(management, management.ListModels, {}, token('ci'))
  expect(take()).toMatchObject([
    { ...common, operation: 'scale model', version: '2' },
    { ...common, operation: 'set default version', model: 'm' },
    { ...common, operation: 'unregister model', model: 'm' },
  ])
  const client = inferenceV2Client(bound.get('triton')!.port, 'triton')
  await call(client, client['RepositoryModelLoad']!, { repository_name: '', model_name: 'm' }, token('ci'))
  expect(take()).toMatchObject([{ ...common, operation: 'load model', model: 'm' }])
  await call(inference, inference.Ping, {}, token('nobody')).catch(() => undefined)
  expect(take()).toMatchObject([
    {
      event: 'authentication',
      protocol: 'grpc',
      outcome: 'refused',
      operation: expect.stringMatching(/\/Ping$/) as unknown,
    },
  ])
  client.close()
  await grpc.close()
})

test('a gRPC call whose client leaves before its end has its line', async () => {
  const { audit, take } = auditLog()
  const grpc = await startGrpc({}, { audit, authorizer: namedCallers({ ci: undefined }) })
  let begin = ignore
  const begun = new Promise<void>((resolve) => (begin = resolve))
  let end = ignore
  const held = new Promise<void>((resolve) => (end = resolve))
  const register = grpc.models.register.bind(grpc.models)
  grpc.models.register = async (request) => {
    begin()
    await held
    return register(request)
  }
  const sockets = new Set<Socket>()
  const proxy = createServer((socket) => {
    const through = connect(grpc.managementPort, '127.0.0.1')
    sockets.add(socket).add(through)
    socket.on('error', ignore).pipe(through)
    through.on('error', ignore).pipe(socket)
  }).listen(0, '127.0.0.1')
  await once(proxy, 'listening')
  const client = managementClient((proxy.address() as AddressInfo).port)
  const ended = call(client, client.RegisterModel, { url: 'm.mar' }, token('ci')).catch(ignore)
  await begun
  for (const socket of sockets) socket.destroy()
  await ended
  await grpc.servers.drain()
  end()
  await new Promise(setImmediate)
  expect(take()).toMatchObject([{ operation: 'register model', outcome: 'done', address: '127.0.0.1' }])
  client.close()
  proxy.close()
  await grpc.close()
})

test('a line over REST names a Unix socket as the address', async () => {
  const { audit, take } = auditLog()
  const path = join(tempDir(), 'rest.sock')
  await startRig(createManagementApp, { audit, address: { kind: 'unix', path } })
  const asked = request({ socketPath: path, path: '/models/m/1', method: 'DELETE' }).end()
  const [answer] = (await once(asked, 'response')) as [IncomingMessage]
  await once(answer.resume(), 'end')
  expect(take()).toMatchObject([{ operation: 'unregister model', address: 'unix socket' }])
})

test('the metrics page can ask for a token', async () => {
  const open = await startRig(createMetricsApp, { tokens: true })
  expect((await ask(open, '/metrics')).status).toBe(200)
  const closed = await startRig(createMetricsApp, { tokens: true, metricsRequireToken: true })
  expect((await ask(closed, '/metrics')).status).toBe(400)
  expect((await ask(closed, '/metrics', as('inference'))).status).toBe(400)
  expect((await ask(closed, '/metrics', as('metrics'))).status).toBe(200)
  closed.app.beginDrain()
  expect((await ask(closed, '/metrics', as('metrics'))).status).toBe(200)
})
