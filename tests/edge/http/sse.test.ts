import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterEach, describe, expect, test } from '@jest/globals'
import { ServeError } from '../../../common/errors.ts'
import { HttpCall } from '../../../frontend/edge/http/http-call.ts'
import { createState } from '../../../frontend/edge/http/app.ts'
import { EventStream } from '../../../frontend/edge/http/sse.ts'
import { MESSAGES } from '../../../frontend/edge/http/server.ts'
import { testAdmission } from '../../support/admission.ts'
import { pageSettings, Wire } from '../../support/http/rig.ts'

let server: Server | undefined

afterEach(() => {
  server?.close()
  server?.closeAllConnections()
})

interface Played {
  wire: Wire
  reply: EventStream
  cancelled: string[]
  statuses: number[]
  /** Resolves when the source learns that there is room again. */
  drained: Promise<void>
}

/** A request whose response the test plays. */
async function play(heartbeatMs = 0, ...headers: string[]): Promise<Played> {
  const statuses: number[] = []
  const deps = {
    settings: { ...pageSettings(), corsAllowedOrigin: '*' },
    metrics: { response: (status: number) => statuses.push(status) },
    admission: testAdmission(),
  }
  const state = createState(deps as never, 'inference', {} as never)
  const cancelled: string[] = []
  let onDrained!: () => void
  const drained = new Promise<void>((resolve) => (onDrained = resolve))
  const answered = new Promise<EventStream>((resolve) => {
    server = createServer(MESSAGES, (req, res) => {
      const call = new HttpCall(state, req, res)
      req.resume().once('end', () => {
        call.reply.follow({ cancel: (reason) => cancelled.push(String(reason)), drained: onDrained })
        resolve(new EventStream(call, heartbeatMs))
      })
    })
  })
  await new Promise<void>((resolve) => server!.listen(0, '127.0.0.1', resolve))
  const wire = new Wire((server!.address() as AddressInfo).port).request('POST', '/', '{}', ...headers)
  return { wire, reply: await answered, cancelled, statuses, drained }
}

const bodyOf = (text: string): string => text.slice(text.indexOf('\r\n\r\n') + 4)

describe('a stream of events', () => {
  test('is opened by its first event, and each event is one chunk', async () => {
    const { wire, reply, statuses } = await play(0, 'Accept-Encoding: gzip')
    reply.event('{"a":1}')
    const head = await wire.until('{"a":1}')
    expect(head).toMatch(/^HTTP\/1.1 200 OK\r\n/)
    for (const line of [
      'content-type: text/event-stream; charset=utf-8',
      'X-Accel-Buffering: no',
      'Cache-Control: no-cache',
      `x-request-id: ${reply.call.requestId}`,
      'access-control-allow-origin: *',
    ])
      expect(head).toContain(`\r\n${line}\r\n`)
    expect(head).not.toMatch(/content-encoding|ts_stream_next/i)
    reply.event('"ü"')
    const piece = Buffer.from('xx"b"yy')
    reply.eventBytes(piece, 2, 5)
    reply.end()
    const text = bodyOf(await wire.until('0\r\n\r\n'))
    const umlaut = Buffer.from('"ü"').toString('latin1')
    expect(text).toBe(`f\r\ndata: {"a":1}\n\n\r\nc\r\ndata: ${umlaut}\n\n\r\nb\r\ndata: "b"\n\n\r\n0\r\n\r\n`)
    expect(statuses).toEqual([200])
  })

  test('leaves the status open until then: a refusal has its own', async () => {
    const { wire, reply, statuses } = await play()
    const json = '{"error":"full"}'
    reply.call.reply.refuse(new ServeError('QUEUE_FULL', 'full'), {
      status: 429,
      headers: ['retry-after', '1'],
      json,
    })
    const text = await wire.rest()
    expect(text).toMatch(/^HTTP\/1.1 429 /)
    expect(text).toContain('retry-after: 1')
    expect(bodyOf(text)).toBe(json)
    expect(statuses).toEqual([429])
    expect(reply.event('late')).toBe(true)
  })

  test('can be a whole answer instead, on a connection that stays', async () => {
    const { wire, reply } = await play()
    reply.call.reply.answer(200, ['content-type', 'text/x', 'connection', 'keep-alive'], Buffer.from('{}'))
    const text = await wire.until('{}')
    expect(text).toContain('connection: keep-alive')
    expect(text).toContain('content-type: text/x\r\n')
    expect(text).toContain('content-length: 2\r\n')
    expect(reply.call.reply.ended).toBe(true)
  })

  test('sends comments while it is silent, but not before it is open', async () => {
    const { wire, reply } = await play(1)
    reply.event('1')
    await wire.until(': keep-alive\n\n')
    reply.end()
    await wire.until('0\r\n\r\n')
    expect(bodyOf(wire.received)).toMatch(/^9\r\ndata: 1\n\n\r\n(e\r\n: keep-alive\n\n\r\n)+0\r\n\r\n$/)
  })

  test('cancels its source when the client leaves, and is silent from then on', async () => {
    const { wire, reply, cancelled } = await play()
    reply.event('1')
    await wire.until('data: 1')
    wire.socket.destroy()
    await new Promise<void>((resolve) => {
      const look = (): void => (reply.ended ? resolve() : void setImmediate(look))
      look()
    })
    expect(cancelled).toEqual(['client left'])
    reply.event('2')
    reply.end()
  })

  test('says when the connection is full, and when it has room again', async () => {
    const { wire, reply, drained } = await play()
    wire.socket.pause()
    const large = '1'.repeat(100_000)
    for (let room = true, sent = 0; room && sent < 1_000; sent++) {
      room = reply.event(large)
      if (room) await new Promise((resolve) => setImmediate(resolve))
    }
    reply.beat()
    wire.socket.resume()
    await drained
    reply.end()
    expect(await wire.until('\r\n0\r\n\r\n')).not.toContain(': keep-alive\n\n')
  })

  test('notes when it said something, for the comments that follow a silence', async () => {
    const { wire, reply } = await play(60_000)
    // The beginning of a stream counts as a sign too.
    reply.open()
    for (const say of [() => reply.event('1'), () => reply.eventBytes(Buffer.from('1'), 0, 1)]) {
      reply.lastWrite = 0
      say()
      expect(reply.lastWrite).toBeGreaterThan(0)
    }
    reply.end()
    await wire.until('0\r\n\r\n')
  })
})
