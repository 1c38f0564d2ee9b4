import { connect } from 'node:http2'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Random } from '../../support/random.ts'
import type { Server } from '../../support/server-process.ts'
import { mutate } from '../mutate.ts'
import { modelInfer, predictions } from '../targets/messages.ts'
import type { Target } from '../target.ts'
import { sendBytes } from './http.ts'

/** Milliseconds in which a call is given its status; a changed length waits for bytes that never come. */
const PATIENCE_MS = 300

const V2 = '/inference.GRPCInferenceService/'
const TORCHSERVE = '/org.pytorch.serve.grpc.inference.InferenceAPIsService/'

interface Rpc {
  readonly port: keyof Server['ports']
  readonly path: string
  readonly target: Target
}

const RPCS: readonly Rpc[] = [
  ...['Predictions', 'StreamPredictions', 'StreamPredictions2'].map((name) => ({
    port: 'grpcInference' as const,
    path: TORCHSERVE + name,
    target: predictions,
  })),
  ...(['openInference', 'triton'] as const).flatMap((port) =>
    ['ModelInfer', 'ModelStreamInfer'].map((name) => ({ port, path: V2 + name, target: modelInfer })),
  ),
]

/** A message with its prefix: not compressed, its length. */
function prefixed(message: Buffer): Buffer {
  const prefix = Buffer.alloc(5)
  prefix.writeUInt32BE(message.byteLength, 1)
  return Buffer.concat([prefix, message])
}

async function messageOf(target: Target, random: Random): Promise<Buffer> {
  const seeds = (await target.seeds()).map((each) => Buffer.from(each))
  const named = Buffer.from(random.pick(seeds).toString('latin1').replace('\x01m', '\x04echo'), 'latin1')
  return mutate(named, random, seeds)
}

/** A call whose message is changed, and sometimes its prefix. */
export async function grpcMessage(server: Server, random: Random): Promise<Uint8Array> {
  const { port, path, target } = random.pick(RPCS)
  const message = prefixed(await messageOf(target, random))
  const input = random.chance(0.2) ? mutate(message, random, [message]) : message
  const session = connect(`http://127.0.0.1:${server.ports[port]}`)
  session.on('error', () => undefined)
  const headers = { ':method': 'POST', ':path': path, 'content-type': 'application/grpc', te: 'trailers' }
  const encoding = random.chance(0.1) ? { 'grpc-encoding': random.pick(['gzip', 'deflate', 'x']) } : {}
  const stream = session.request({ ...headers, ...encoding })
  stream.on('error', () => undefined).resume()
  const ended = new Promise((resolve) => stream.once('close', resolve))
  stream.end(input)
  await Promise.race([ended, sleep(PATIENCE_MS)])
  session.destroy()
  return input
}

const PREFACE = Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n')

function frame(type: number, flags: number, stream: number, payload: Buffer): Buffer {
  const head = Buffer.alloc(9)
  head.writeUIntBE(payload.byteLength, 0, 3)
  head[3] = type
  head[4] = flags
  head.writeUInt32BE(stream, 5)
  return Buffer.concat([head, payload])
}

/** A header line without compression. */
function literal(name: string, value: string): Buffer {
  return Buffer.concat([
    Buffer.from([0x10, name.length]),
    Buffer.from(name),
    Buffer.from([value.length]),
    Buffer.from(value),
  ])
}

/** A connection whose bytes are changed anywhere: frames, headers, messages. */
export async function grpcSession(server: Server, random: Random): Promise<Uint8Array> {
  const { port, path, target } = random.pick(RPCS)
  const lines: [string, string][] = [
    [':method', 'POST'],
    [':path', path],
    [':scheme', 'http'],
    ['content-type', 'application/grpc'],
    ['te', 'trailers'],
  ]
  const headers = Buffer.concat(lines.map(([name, value]) => literal(name, value)))
  const frames = [
    frame(4, 0, 0, Buffer.alloc(0)),
    frame(1, 4, 1, headers),
    frame(0, 1, 1, prefixed(await messageOf(target, random))),
    frame(6, 0, 0, Buffer.alloc(8)),
    frame(8, 0, 0, Buffer.from([0, 0, 1, 0])),
    frame(3, 0, 1, Buffer.alloc(4)),
  ]
  const whole = Buffer.concat(frames)
  const input = Buffer.concat([PREFACE, mutate(whole, random, frames)])
  await sendBytes(server.ports[port], input)
  return input
}
