import { once } from 'node:events'
import { createServer, type Server } from 'node:http'
import { type AddressInfo, connect, type Socket } from 'node:net'
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals'
import type { SafeResponse } from '../../../frontend/edge/http/safe-response.ts'
import { MESSAGES } from '../../../frontend/edge/http/server.ts'
import type { BodyTaker, ServerRequest } from '../../../frontend/edge/http/server-request.ts'

let server: Server
let client: Socket
let received: string
const requests: { req: ServerRequest; res: SafeResponse }[] = []

beforeEach(async () => {
  received = ''
  server = createServer(MESSAGES, (req, res) => {
    requests.push({ req, res })
    server.emit('told')
  })
  await once(server.listen(0, '127.0.0.1'), 'listening')
  client = connect((server.address() as AddressInfo).port, '127.0.0.1')
  client.on('data', (data: Buffer) => (received += data.toString())).on('error', () => undefined)
  await once(client, 'connect')
})

afterEach(() => {
  requests.length = 0
  client.destroy()
  server.closeAllConnections()
  server.close()
})

const head = (length: number): string => `POST / HTTP/1.1\r\nHost: a\r\nContent-Length: ${length}\r\n\r\n`

/** The next request, whose body or a part of it may be sent with it. */
async function ask(text: string): Promise<{ req: ServerRequest; res: SafeResponse }> {
  const told = once(server, 'told')
  client.write(text)
  await told
  return requests.at(-1)!
}

interface Seen extends BodyTaker {
  chunks: string[]
  ended: Promise<void>
  ends: number
}

/** Takes at most so many chunks. */
function taker(most = Infinity): Seen {
  const chunks: string[] = []
  let onEnd!: () => void
  const seen: Seen = {
    chunks,
    ends: 0,
    ended: new Promise((resolve) => (onEnd = resolve)),
    take: (chunk) => chunks.push(chunk.toString()) <= most,
    end: () => {
      seen.ends += 1
      onEnd()
    },
  }
  return seen
}

async function arrived(text: string): Promise<void> {
  while (!received.includes(text)) await once(client, 'data')
}

describe('a body that is passed on', () => {
  test('goes to its taker in order, and the connection serves the next request', async () => {
    for (const answer of ['one', 'two']) {
      const { req, res } = await ask(head(4))
      const seen = taker()
      req.passTo(seen)
      const first = new Promise<void>((resolve) => {
        const { take } = seen
        seen.take = (chunk) => (resolve(), take(chunk))
      })
      client.write('ab')
      await first
      expect([seen.chunks, seen.ends, req.readableEnded]).toEqual([['ab'], 0, false])
      client.write('cd')
      await seen.ended
      expect([seen.chunks, seen.ends]).toEqual([['ab', 'cd'], 1])
      expect([req.bodyBytes, req.readableEnded, req.readableFlowing]).toEqual([4, true, null])
      res.end(answer)
      await arrived(answer)
    }
    expect(requests).toHaveLength(2)
  })

  test('reaches a taker that comes late, from its beginning', async () => {
    const { req } = await ask(head(2))
    const { push } = req
    const whole = new Promise<void>((resolve) => {
      req.push = (chunk) => {
        if (chunk === null) setImmediate(resolve)
        return push.call(req, chunk)
      }
    })
    client.write('ab')
    await whole
    const seen = taker()
    req.passTo(seen)
    await seen.ended
    expect([seen.chunks, req.bodyBytes]).toEqual([['ab'], 2])
  })

  test.each(['at once', 'late'])(
    'stops for a taker that wants no more, and others can read on: %s',
    async (when) => {
      const { req, res } = await ask(head(6) + (when === 'late' ? 'ab' : ''))
      if (when === 'late')
        while (req.readableLength < 2) await new Promise((resolve) => setImmediate(resolve))
      const seen = taker(0)
      const rest: string[] = []
      const refused = new Promise<void>((resolve) => {
        seen.take = (chunk) => {
          seen.chunks.push(chunk.toString())
          req.on('data', (data: Buffer) => rest.push(data.toString()))
          resolve()
          return false
        }
      })
      req.passTo(seen)
      if (when === 'at once') client.write('ab')
      await refused
      client.write('cdef')
      await once(req, 'end')
      expect([seen.chunks, seen.ends]).toEqual([['ab'], 0])
      expect(rest.join('')).toContain('cdef')
      expect(req.bodyBytes).toBe(6)
      res.end('no')
      await arrived('no')
    },
  )

  test('is a stream again once it is released', async () => {
    const { req } = await ask(head(4))
    const seen = taker()
    req.passTo(seen)
    req.release()
    const read = new Promise((resolve) => req.once('data', resolve))
    client.write('abcd')
    expect(String(await read)).toBe('abcd')
    await once(req, 'end')
    expect([seen.chunks, seen.ends]).toEqual([[], 0])
  })

  test('has not failed when its client leaves during the answer', async () => {
    const { req, res } = await ask(head(2))
    const seen = taker()
    req.passTo(seen)
    client.write('ab')
    await seen.ended
    let aborted = false
    req.on('aborted', () => (aborted = true))
    const closed = once(res, 'close')
    client.destroy()
    await closed
    expect(aborted).toBe(false)
  })
})
