import { connect } from 'node:net'
import { gzipSync } from 'node:zlib'
import { setTimeout as sleep } from 'node:timers/promises'
import { CORPUS, inputsOf } from '../places.ts'
import { mutate } from '../mutate.ts'
import { multipart, openai, tensors } from '../targets/bodies.ts'
import type { Target } from '../target.ts'
import type { Random } from '../../support/random.ts'
import type { Server } from '../../support/server-process.ts'

/** Milliseconds for which a client waits for an answer; many changed requests are unfinished. */
const PATIENCE_MS = 300

const bodies = new Map<string, Buffer[]>()

async function bodyOf(target: Target, random: Random): Promise<[head: string, body: Buffer]> {
  const known = bodies.get(target.name)
  const seeds =
    known ?? [...(await target.seeds()), ...inputsOf(CORPUS, target.name)].map((each) => Buffer.from(each))
  bodies.set(target.name, seeds)
  const changed = random.chance(0.8)
    ? mutate(random.pick(seeds), random, seeds, target.words)
    : random.pick(seeds)
  const end = Math.max(0, changed.indexOf('\n'))
  const head = changed.toString('latin1', 0, end).replace(/[^\w-]/g, '')
  return [head, changed.subarray(end + 1)]
}

type Kind = (random: Random) => Promise<[path: string, headers: string[], body: Buffer]>

const KINDS: readonly Kind[] = [
  async (random) => {
    const [boundary, body] = await bodyOf(multipart, random)
    return ['/predictions/echo', [`content-type: multipart/form-data; boundary=${boundary}`], body]
  },
  async (random) => {
    const [, body] = await bodyOf(openai, random)
    const path = random.pick([
      '/v1/chat/completions',
      '/v1/completions',
      '/v1/embeddings',
      '/v2/models/echo/infer/completions',
    ])
    const text = Buffer.from(body.toString('latin1').replace('"m"', '"echo"'), 'latin1')
    const isPacked = random.chance(0.2)
    const encoding = isPacked ? ['content-encoding: gzip'] : []
    return [path, ['content-type: application/json', ...encoding], isPacked ? gzipSync(text) : text]
  },
  async (random) => {
    const [length, body] = await bodyOf(tensors, random)
    const path = `/v2/models/echo/${random.pick(['infer', 'infer_stream', 'generate', 'generate_stream'])}`
    return [path, length === '' ? [] : [`inference-header-content-length: ${length}`], body]
  },
  (random) => Promise.resolve(['/predictions/echo', [], random.bytes(random.integer(0, 2_000))]),
  (random) =>
    Promise.resolve([
      `/${random.pick(['ping', 'models', 'api-description', 'v2', 'v1/models', 'metrics'])}`,
      [],
      Buffer.alloc(0),
    ]),
]

/** A whole request as bytes, often with a changed head. */
async function requestBytes(random: Random): Promise<Buffer> {
  const [path, headers, body] = await random.pick(KINDS)(random)
  const isChunked = random.chance(0.3)
  const framing = isChunked ? 'transfer-encoding: chunked' : `content-length: ${body.byteLength}`
  const method = body.byteLength === 0 ? 'GET' : 'POST'
  const lines = [`${method} ${path} HTTP/1.1`, 'host: 127.0.0.1', ...headers, framing, 'connection: close']
  const head = Buffer.from(`${lines.join('\r\n')}\r\n\r\n`)
  const whole = Buffer.concat([head, isChunked ? chunked(body, random) : body])
  return random.chance(0.3) ? mutate(whole, random, [whole, head], lines) : whole
}

function chunked(body: Buffer, random: Random): Buffer {
  const pieces: Buffer[] = []
  for (let at = 0; at < body.byteLength;) {
    const piece = body.subarray(at, at + random.pick([1, 7, 100, 10_000]))
    pieces.push(Buffer.from(`${piece.byteLength.toString(16)}\r\n`), piece, Buffer.from('\r\n'))
    at += piece.byteLength
  }
  return Buffer.concat([...pieces, Buffer.from('0\r\n\r\n')])
}

/** Sends a changed request to one of the HTTP ports, and waits for the end or a little. */
export async function bytesOverHttp(server: Server, random: Random): Promise<Uint8Array> {
  const input = await requestBytes(random)
  const { inference, management, metrics } = server.ports
  await sendBytes(random.pick([inference, inference, inference, management, metrics]), input)
  return input
}

export async function sendBytes(port: number, input: Buffer): Promise<void> {
  const socket = connect(port, '127.0.0.1')
  socket.on('error', () => undefined)
  socket.resume()
  const closed = new Promise((resolve) => socket.once('close', resolve))
  socket.write(input)
  await Promise.race([closed, sleep(PATIENCE_MS)])
  socket.destroy()
}
