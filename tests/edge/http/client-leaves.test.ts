import { describe, expect, test } from '@jest/globals'
import type { Socket } from 'node:net'
import { createInferenceApp } from '../../../frontend/dialects/rest-apps.ts'
import type { RestApp, RestDeps } from '../../../frontend/edge/http/app.ts'
import type { Job } from '../../../frontend/jobs/job.ts'
import { bytes, type Rig, startRig, Wire } from '../../support/http/rig.ts'

const OK = { status: 200, headers: {} }

const WAYS: [string, (wire: Wire) => void][] = [
  ['closes', (wire) => wire.socket.destroy()],
  ['resets', (wire) => wire.socket.resetAndDestroy()],
  ['half-closes', (wire) => wire.socket.end()],
]

async function left(rig: Rig, job: Job): Promise<void> {
  await rig.models.until(() => rig.models.abandoned.length > 0)
  expect(rig.models.abandoned).toEqual([{ job, reason: 'client left' }])
  expect(job.outcome).toBe('cancelled')
}

describe.each(WAYS)('a client that %s', (_way, leave) => {
  test.each(['queued', 'running', 'streaming'])('cancels its %s request', async (stage) => {
    const rig = await startRig(createInferenceApp)
    const wire = new Wire(rig.listener.port, { allowHalfOpen: true }).request('POST', '/predictions/m', '{}')
    const job = await rig.models.nextJob()
    if (stage !== 'queued') rig.models.start(job)
    if (stage === 'streaming') {
      job.respond({ ...OK, body: bytes('item'), more: true })
      await wire.until('item')
    }
    leave(wire)
    await left(rig, job)
  })

  test('while it does not read cancels its stream and frees the connection', async () => {
    const rig = await startRig(createInferenceApp)
    rig.models.onJob = (job) => rig.models.start(job)
    const wire = new Wire(rig.listener.port, { allowHalfOpen: true }).request('GET', '/predictions/m')
    const job = await rig.models.nextJob()
    wire.socket.pause()
    // More than the buffers of both kernels hold, so that the rest can never be flushed.
    const block = Buffer.alloc(65_536)
    for (let i = 0; i < 320; i++) job.respond({ ...OK, body: block, more: true })
    leave(wire)
    await left(rig, job)
    // Nothing of the connection may remain, so that the listener can close at once.
    await rig.listener.close()
  })

  test('in the middle of its upload gets no job', async () => {
    let arrived = (): void => undefined
    const arrival = new Promise<void>((resolve) => {
      arrived = resolve
    })
    const rig = await startRig(watched(() => arrived()))
    const wire = new Wire(rig.listener.port, { allowHalfOpen: true })
    wire.send('POST /predictions/m HTTP/1.1\r\nHost: a\r\nContent-Length: 1000\r\n\r\nabc')
    await arrival
    leave(wire)
    await rig.listener.close()
    expect(rig.models.jobs).toEqual([])
  })
})

test('a client that leaves after its answer cancels nothing', async () => {
  const rig = await startRig(createInferenceApp)
  rig.models.onJob = (job) => job.respond({ ...OK, body: bytes('answer') })
  const wire = new Wire(rig.listener.port).request('GET', '/predictions/m')
  await wire.until('answer')
  wire.socket.destroy()
  await rig.listener.close()
  expect(rig.models.abandoned).toEqual([])
  expect(rig.models.jobs[0]!.outcome).toBe('finished')
})

test('of a client that leaves with pipelined requests, the first is cancelled and the others never begin', async () => {
  const rig = await startRig(createInferenceApp)
  const wire = new Wire(rig.listener.port)
  for (let i = 0; i < 3; i++) wire.request('GET', '/predictions/m')
  await rig.models.until(() => rig.models.jobs.length === 1)
  wire.socket.destroy()
  await rig.models.until(() => rig.models.abandoned.length === 1)
  await rig.listener.close()
  expect(rig.models.jobs.map((job) => job.outcome)).toEqual(['cancelled'])
})

test('requests on one connection leave no listeners behind', async () => {
  const sockets = new Set<Socket>()
  const rig = await startRig(watched((socket) => sockets.add(socket)))
  rig.models.onJob = (job) => {
    rig.models.start(job)
    job.respond({ ...OK, body: bytes('a'), more: true })
    job.respond({ ...OK, body: bytes('b'), more: false })
  }
  const wire = new Wire(rig.listener.port)
  const counts: number[] = []
  for (let i = 0; i < 30; i++) {
    wire.received = ''
    wire.request('POST', '/predictions/m', '{}')
    await wire.until('0\r\n\r\n')
    wire.received = ''
    wire.request('GET', '/ping')
    await wire.until('Healthy')
    for (const socket of sockets) counts.push(listeners(socket))
  }
  expect(counts.length).toBe(30)
  expect(Math.max(...counts)).toBe(counts[0])
})

/** The inference app, seen from its connections. */
function watched(onRequest: (socket: Socket) => void): (deps: RestDeps) => RestApp {
  return (deps) => {
    const app = createInferenceApp(deps)
    const listener: RestApp['listener'] = (req, res) => {
      onRequest(req.socket)
      app.listener(req, res)
    }
    return { ...app, listener }
  }
}

function listeners(socket: Socket): number {
  return socket.eventNames().reduce((sum, name) => sum + socket.listenerCount(name), 0)
}
