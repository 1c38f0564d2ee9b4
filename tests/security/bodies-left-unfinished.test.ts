import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { beforeAll, expect, test } from '@jest/globals'
import { rawRequest } from '../support/raw-http.ts'
import { ECHO } from '../support/count.ts'
import { startServer, type Server } from '../support/server.ts'

const MIB = 1024 * 1024
/** One address has half; of the bodies below, three fit. */
const MAX_UNFINISHED = 32 * MIB
const BODY = 5 * MIB

let server: Server

beforeAll(async () => {
  const config = { max_unfinished_bytes: MAX_UNFINISHED, ts_open_inference_protocol: true }
  server = await startServer({ models: [ECHO], config })
  await server.ready('echo')
})

/** Sends all of a body but its last byte. */
class Unfinished {
  readonly socket: Socket
  readonly #isChunked: boolean
  #received = ''

  constructor(path = '/predictions/echo', framing: 'a length' | 'chunks' = 'a length') {
    this.#isChunked = framing === 'chunks'
    this.socket = connect(server.ports.inference, '127.0.0.1')
    this.socket.on('error', () => undefined).on('data', (data: Buffer) => (this.#received += data.toString()))
    const length = this.#isChunked ? 'transfer-encoding: chunked' : `content-length: ${BODY}`
    const head = [`POST ${path} HTTP/1.1`, 'Host: a', 'content-type: application/octet-stream', length]
    this.socket.write(`${head.join('\r\n')}\r\n\r\n`)
    this.#send(BODY - 1)
  }

  finish(): void {
    this.#send(1)
    if (this.#isChunked) this.socket.write('0\r\n\r\n')
  }

  #send(bytes: number): void {
    if (this.#isChunked) this.socket.write(`${bytes.toString(16)}\r\n`)
    this.socket.write(Buffer.alloc(bytes, 'x'))
    if (this.#isChunked) this.socket.write('\r\n')
  }

  /** The head of its answer, and a refusal's body; undefined before. */
  get answer(): string | undefined {
    return this.#received.includes('\r\n\r\n') ? this.#received.slice(0, 2_000) : undefined
  }

  /** Resolves with the answer. */
  async answered(): Promise<string> {
    while (this.answer === undefined) await once(this.socket, 'data')
    return this.answer
  }
}

/** Opens so many, and resolves when so many of them have their answers. */
async function open(count: number, refused: number, ...kind: ConstructorParameters<typeof Unfinished>) {
  const all = Array.from({ length: count }, () => new Unfinished(...kind))
  const answered = () => all.filter(({ answer }) => answer !== undefined)
  while (answered().length < refused)
    await Promise.race(all.filter(({ answer }) => answer === undefined).map((each) => each.answered()))
  return { refused: answered(), waiting: all.filter(({ answer }) => answer === undefined) }
}

async function finish(waiting: readonly Unfinished[]): Promise<void> {
  for (const each of waiting) each.finish()
  for (const each of waiting) expect(await each.answered()).toContain('HTTP/1.1 200')
}

/** Resolves when the server has closed their connections, too. */
async function leave(waiting: readonly Unfinished[]): Promise<void> {
  for (const { socket } of waiting) socket.end()
  await Promise.all(waiting.map(({ socket }) => once(socket, 'close')))
}

function close(all: readonly Unfinished[]): void {
  for (const { socket } of all) socket.destroy()
}

// What is held for a body of unknown length is half as long again.
test.each([
  ['a length', 3],
  ['chunks', 4],
] as const)(
  'of six bodies that stay unfinished, so many are refused that the others fit: with %s',
  async (framing, count) => {
    const { refused, waiting } = await open(6, count, '/predictions/echo', framing)
    for (const { answer } of refused) {
      expect(answer).toContain('HTTP/1.1 503')
      expect(answer).toContain(
        '"message": "Too many bytes of unfinished requests wait (max_unfinished_bytes)"',
      )
      expect(answer).toMatch(/retry-after: 1\r\n/i)
    }
    const { status, body } = await rawRequest(server.ports.inference, '/predictions/echo', { body: 'hello' })
    expect([status, body]).toEqual([200, 'hello'])
    await finish(waiting)
    close([...refused, ...waiting])
  },
)

test.each(['/v2/models/echo/infer', '/v1/embeddings'])('%s answers 429', async (path) => {
  const { refused, waiting } = await open(4, 1, path)
  expect(refused).toHaveLength(1)
  expect(refused[0]!.answer).toContain('HTTP/1.1 429')
  expect(refused[0]!.answer).toContain('max_unfinished_bytes')
  await leave(waiting)
  close(refused)
})

test('bodies count no more when they have come to their end, also while their connections stay', async () => {
  const whole: Unfinished[] = []
  for (let i = 0; i < 8; i += 1) {
    const each = new Unfinished()
    await finish([each])
    whole.push(each)
  }
  const { waiting } = await open(3, 0)
  await finish(waiting)
  close([...whole, ...waiting])
})

test('bodies whose clients leave count no more', async () => {
  for (let i = 0; i < 8; i += 1) await leave([new Unfinished()])
  const { waiting } = await open(3, 0)
  await finish(waiting)
  close(waiting)
})
