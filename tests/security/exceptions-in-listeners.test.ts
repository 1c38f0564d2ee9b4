import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterEach, expect, test } from '@jest/globals'
import { readBody, readDecoded } from '../../frontend/edge/http/body.ts'
import { HttpCall } from '../../frontend/edge/http/http-call.ts'
import { listenerErrors } from '../../frontend/dialects/torchserve/rest-errors.ts'
import { createState } from '../../frontend/edge/http/app.ts'
import { MESSAGES } from '../../frontend/edge/http/server.ts'
import { guarded as guardedCall } from '../../frontend/edge/grpc/call-error.ts'
import { Job } from '../../frontend/jobs/job.ts'
import type { JobHolder } from '../../frontend/jobs/scheduler.ts'
import { jobLimits } from '../../frontend/jobs/time-limit.ts'
import type { ReplySink } from '../../frontend/jobs/reply-sink.ts'
import type { ServeError } from '../../common/errors.ts'
import { pageSettings } from '../support/http/rig.ts'

let server: Server | undefined
const logged: unknown[] = []
const log = { error: (...entry: unknown[]) => logged.push(entry), warn: () => undefined }
const settings = { ...pageSettings(), maxRequestSize: 1000 }
const deps = { settings, metrics: { response: () => undefined }, log }
const state = createState(deps as never, 'inference', listenerErrors([]))

afterEach(() => {
  logged.length = 0
  server?.close()
  server?.closeAllConnections()
})

async function serve(listener: (call: HttpCall) => void): Promise<string> {
  server = createServer(MESSAGES, (req, res) => listener(new HttpCall(state, req, res)))
  await new Promise<void>((resolve) => server!.listen(0, '127.0.0.1', resolve))
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

const broken = (): never => {
  throw new TypeError('a defect')
}

test.each<[string, (call: HttpCall) => void]>([
  ['reads a body', (call) => readBody(call, broken)],
  ['reads a body that is not compressed', (call) => readDecoded(call, broken)],
  ['hears data', (call) => call.req.on('data', call.guarded(broken))],
  ['hears the end', (call) => call.req.resume().on('end', call.guarded(broken))],
])('what throws when it %s is answered 500, and the next request is served', async (_what, listener) => {
  const url = await serve(listener)
  for (let i = 0; i < 2; i++) {
    const answer = await fetch(url, { method: 'POST', body: 'x' })
    expect([answer.status, await answer.text()]).toEqual([500, expect.not.stringContaining('defect')])
  }
  expect(logged).toHaveLength(2)
})

test('what throws after decompression is answered 500', async () => {
  const { gzipSync } = await import('node:zlib')
  const url = await serve((call) => readDecoded(call, broken))
  const body = new Uint8Array(gzipSync('x'))
  const init = { method: 'POST', body, headers: { 'content-encoding': 'gzip' } }
  expect((await fetch(url, init)).status).toBe(500)
})

test('what throws in the middle of an answer ends its connection', async () => {
  const url = await serve((call) => {
    call.res.writeHead(200).write('half')
    call.req.on('data', call.guarded(broken))
  })
  const answer = await fetch(url, { method: 'POST', body: 'x' })
  await expect(answer.text()).rejects.toThrow()
})

test('what throws in a listener of a gRPC call fails that call', () => {
  const failures: unknown[] = []
  const grpcLog = { debug: () => undefined, error: (...entry: unknown[]) => void logged.push(entry) }
  guardedCall(grpcLog, (error) => failures.push(error), broken)()
  expect([failures, logged.length]).toEqual([[{ code: 13, details: 'Internal server error' }], 1])
})

test.each(['whole', 'open', 'write', 'close'] as const)(
  'a sink that throws in %s fails its job alone, not the worker whose answer it is',
  (method) => {
    const failures: ServeError[] = []
    const abandoned: string[] = []
    const sink: ReplySink = {
      whole: () => undefined,
      open: () => undefined,
      write: () => true,
      close: () => undefined,
      fail: (error) => failures.push(error),
      [method]: broken,
    }
    const holder: JobHolder = { abandon: (_job, reason) => abandoned.push(reason), drained: () => undefined }
    const request = { requestId: 'r', modelName: 'm', method: 'handle' as const, headers: '', parts: [] }
    const job = new Job(request, sink)
    job.queued(holder, jobLimits({ queue: 0, firstResponse: 0, gap: 0, total: 0 }))
    job.started(holder)
    const answer = { status: 200, headers: {}, body: Buffer.from('x') }
    if (method === 'whole') job.respond(answer)
    else {
      job.respond({ ...answer, more: true })
      job.respond({ ...answer, more: false })
    }
    expect([job.ended, failures.map(({ code }) => code)]).toEqual([true, ['INTERNAL']])
    expect(abandoned).toEqual(method === 'open' || method === 'write' ? ['failed'] : [])
  },
)
