import { createServer, type Server } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import { afterEach, describe, expect, test } from '@jest/globals'
import { HttpCall } from '../../../frontend/edge/http/http-call.ts'
import { createState } from '../../../frontend/edge/http/app.ts'
import { RestReply } from '../../../frontend/dialects/torchserve/rest-reply.ts'
import { EventStream } from '../../../frontend/edge/http/sse.ts'
import { MESSAGES } from '../../../frontend/edge/http/server.ts'
import { testAdmission } from '../../support/admission.ts'
import { pageSettings, Wire } from '../../support/http/rig.ts'

/** More than the sockets of both sides take. */
const LARGE = Buffer.alloc(32 * 1024 * 1024, 'x')
const HEAD = { status: 200, headers: {} }
const LIMIT_MS = 60_000

let server: Server | undefined

afterEach(() => {
  server?.close()
  server?.closeAllConnections()
})

interface Asked {
  wire: Wire
  /** The server's end of the connection. */
  socket: Socket
  sink: RestReply
  events: EventStream
}

/** A request whose client reads nothing. */
async function ask(): Promise<Asked> {
  const state = createState(
    { settings: pageSettings(), admission: testAdmission(), metrics: { response: () => undefined } } as never,
    'inference',
    {} as never,
  )
  const asked = new Promise<Omit<Asked, 'wire'>>((resolve) => {
    server = createServer(MESSAGES, (req, res) => {
      const call = new HttpCall(state, req, res)
      const [sink, events] = [new RestReply(call), new EventStream(call)]
      req.resume().once('end', () => resolve({ socket: req.socket, sink, events }))
    })
  })
  await new Promise<void>((resolve) => server!.listen(0, '127.0.0.1', resolve))
  const wire = new Wire((server!.address() as AddressInfo).port).request('POST', '/', '{}')
  wire.socket.pause()
  return { wire, ...(await asked) }
}

const ANSWERS: [name: string, answer: (asked: Asked, body: Buffer) => void][] = [
  ['a whole answer', ({ sink }, body) => sink.whole(HEAD, body)],
  [
    'a stream that has ended',
    ({ sink }, body) => {
      sink.open(HEAD)
      sink.write(body, 0, body.byteLength)
      sink.close()
    },
  ],
  [
    'a stream of events that has ended',
    ({ events }, body) => {
      events.eventBytes(body, 0, body.byteLength)
      events.end()
    },
  ],
  ['a whole answer of a dialect', ({ events }, body) => events.call.reply.answer(200, [], body)],
]

describe('nobody reads', () => {
  test.each(ANSWERS)('%s: its connection is ended after a minute', async (_name, answer) => {
    const asked = await ask()
    answer(asked, LARGE)
    expect(asked.socket.timeout).toBe(LIMIT_MS)
    // Node's action when the minute is over.
    asked.socket.emit('timeout')
    expect(asked.socket.destroyed).toBe(true)
    asked.wire.socket.resume()
    await asked.wire.closed
    expect(asked.wire.received.length).toBeLessThan(LARGE.byteLength)
  })

  test.each(ANSWERS)('%s: nothing is done when the sockets take it all', async (_name, answer) => {
    const asked = await ask()
    answer(asked, Buffer.from('short'))
    await new Promise((resolve) => setImmediate(resolve))
    expect(asked.socket.timeout).not.toBe(LIMIT_MS)
  })
})
