import { createHash } from 'node:crypto'
import { type ClientRequest, request } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import { Metadata } from '@grpc/grpc-js'
import { call, inferenceClient } from '../../support/grpc-clients.ts'
import type { Random } from '../../support/random.ts'
import type { Caller } from '../callers.ts'
import { DIGEST } from '../models.ts'
import { inTime, type Lane } from './lane.ts'

const MAX_BYTES = 3_000_000
/** Three of them in a form fit into a request. */
const MAX_PART_BYTES = 2_000_000
/** Random bytes are made once; uploads are pieces of them. */
const POOL_BYTES = 4_000_000

interface Upload {
  readonly name: string
  readonly type: string
  readonly body: Buffer
  /** Bytes of the pieces that are sent; undefined: with a content-length, at once. */
  readonly piece?: number
  /** Leave after so many pieces. */
  readonly leaveAfter?: number
  readonly expected: string
}

let pool: Buffer | undefined

/** Sends bodies of all sizes and kinds; the handler answers with their hashes. */
export async function uploads(lane: Lane, signal: AbortSignal): Promise<void> {
  pool ??= lane.random.bytes(POOL_BYTES)
  while (!signal.aborted) {
    const { random, callers } = lane
    await callers.ask(random, DIGEST, (caller) =>
      random.chance(0.2) ? overGrpc(lane, caller, drawBytes(random)) : overHttp(lane, caller, draw(random)),
    )
  }
}

function drawBytes(random: Random, most = MAX_BYTES): Buffer {
  const size = Math.floor(most ** random.fraction())
  const from = random.integer(0, POOL_BYTES - size)
  return pool!.subarray(from, from + size)
}

function draw(random: Random): Upload {
  const piece = random.chance(0.5) ? random.pick([1_000, 16_384, 100_000]) : undefined
  const leaveAfter = piece !== undefined && random.chance(0.2) ? random.integer(0, 3) : undefined
  if (random.chance(0.5)) {
    const body = drawBytes(random)
    const type = 'application/octet-stream'
    return { name: 'upload, binary', type, body, piece, leaveAfter, expected: line('body', body) }
  }
  const parts = Array.from({ length: random.integer(1, 3) }, (_, k) => ({
    name: `part${k}`,
    data: drawBytes(random, MAX_PART_BYTES),
  }))
  const boundary = `----soak${random.integer(0, 1e9)}`
  const body = Buffer.concat([
    ...parts.flatMap(({ name, data }) => [
      Buffer.from(`--${boundary}\r\ncontent-disposition: form-data; name="${name}"; filename="${name}"\r\n`),
      Buffer.from('content-type: application/octet-stream\r\n\r\n'),
      data,
      Buffer.from('\r\n'),
    ]),
    Buffer.from(`--${boundary}--\r\n`),
  ])
  const type = `multipart/form-data; boundary=${boundary}`
  const expected = parts.map(({ name, data }) => line(name, data)).join('\n')
  return { name: 'upload, multipart', type, body, piece, leaveAfter, expected }
}

function line(name: string, data: Buffer): string {
  return `${name} ${data.byteLength} ${createHash('sha256').update(data).digest('hex')}`
}

async function overHttp({ server, ledger, random }: Lane, caller: Caller, upload: Upload): Promise<void> {
  const { name, expected, leaveAfter } = upload
  try {
    const got = await inTime(post(server.ports.inference, caller, upload, random))
    if (leaveAfter !== undefined && got === undefined) ledger.answer(name, 'left')
    else settle(ledger, name, expected, got ?? 'nothing')
  } catch (error) {
    settle(ledger, name, expected, String(error))
  }
}

/** The body of the answer; undefined: the client left. */
async function post(
  port: number,
  caller: Caller,
  upload: Upload,
  random: Random,
): Promise<string | undefined> {
  const { type, body, piece = Math.max(body.byteLength, 1), leaveAfter } = upload
  const length = upload.piece === undefined ? { 'content-length': body.byteLength } : {}
  const headers = { ...caller.headers, 'content-type': type, ...length }
  const path = `/predictions/${DIGEST}`
  const asked = request({ port, host: '127.0.0.1', path, method: 'POST', headers, agent: false })
  const answer = new Promise<string>((resolve, reject) => {
    asked.on('error', reject)
    asked.on('response', (response) => {
      let text = ''
      response.setEncoding('utf8').on('data', (more: string) => (text += more))
      response.on('error', reject).on('end', () => resolve(text))
    })
  })
  answer.catch(() => undefined)
  for (let at = 0, pieces = 0; at < body.byteLength; at += piece, pieces += 1) {
    if (pieces === leaveAfter) {
      asked.destroy()
      return undefined
    }
    if (!asked.write(body.subarray(at, at + piece))) await drained(asked)
    if (piece < body.byteLength && random.chance(0.05)) await sleep(random.integer(1, 20))
  }
  asked.end()
  return answer
}

function drained(asked: ClientRequest): Promise<void> {
  return new Promise((resolve) => {
    if (asked.destroyed) {
      // An answer has come, and the connection is over.
      resolve()
      return
    }
    const go = (): void => {
      asked.off('drain', go).off('close', go)
      resolve()
    }
    asked.on('drain', go).on('close', go)
  })
}

async function overGrpc({ server, ledger }: Lane, caller: Caller, data: Buffer): Promise<void> {
  const client = inferenceClient(server.ports.grpcInference)
  try {
    const input = { model_name: DIGEST, input: { data } }
    const metadata = Metadata.fromHttp2Headers(caller.headers)
    const { prediction } = await inTime(call(client, client.Predictions, input, metadata))
    settle(ledger, 'upload, gRPC', line('data', data), prediction.toString())
  } catch (error) {
    settle(ledger, 'upload, gRPC', line('data', data), String(error))
  } finally {
    client.close()
  }
}

function settle(ledger: Lane['ledger'], name: string, expected: string, got: string): void {
  const isRight = got === expected
  const what = `expected ${expected}, got ${got}`
  ledger.answer(name, isRight ? 'finished' : 'failed', isRight ? undefined : 'a wrong answer', what)
}
