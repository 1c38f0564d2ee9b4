import { HUNDRED, ECHO, ECHO_BODY, ITEMS, STREAM_BODY, STREAM_ITEMS } from '../ceilings/workload.ts'
import type { Load } from '../generators/generator.ts'
import { streamCall, unaryCall } from '../grpc-calls.ts'
import type { Target } from '../targets/target.ts'
import { callAndRead, postAndRead, type Answer } from '../wire.ts'

export type Protocol = 'rest' | 'grpc'

/** One kind of request: its load, and its correct answer. */
export interface Case {
  name: string
  protocol: Protocol
  /** Expected HTTP chunks or gRPC messages; 0 for unary answers. */
  items: number
  load(target: Target): Pick<Load, 'url' | 'body'> & Partial<Pick<Load, 'headers'>>
  ask(target: Target): Promise<Answer>
  isRight(answer: Answer): boolean
}

const streamed = STREAM_ITEMS.join('')
/** What an answer must be; how many bytes it takes is up to the target. */
type Expected = Omit<Answer, 'bytes'>

export function cases(protocol: Protocol): Case[] {
  return protocol === 'rest' ? restCases() : grpcCases()
}

function restCases(): Case[] {
  const unary = { status: 200, body: ECHO_BODY, pieces: 1 }
  const stream = { status: 200, body: streamed, pieces: ITEMS }
  return [
    rest('REST unary', 0, ECHO, ECHO_BODY, unary),
    rest('REST stream', ITEMS, HUNDRED, STREAM_BODY, stream),
  ]
}

/** A Python handler's return value is its last item. TorchServe's gRPC streams need a streaming handler. */
export function pythonCases(): Case[] {
  const stream = { status: 200, body: streamed, pieces: ITEMS }
  return [
    ...restCases().slice(0, 1),
    rest('REST stream', ITEMS, HUNDRED, STREAM_BODY, stream),
    ...grpcCases().slice(0, 1),
    grpc('gRPC stream', ITEMS, streamCall(HUNDRED, STREAM_BODY), { ...stream, status: 0 }),
  ]
}

function rest(name: string, items: number, model: string, body: string, expected: Expected): Case {
  const url = (target: Target): string => `${target.restOrigin!}/predictions/${model}`
  return {
    name,
    protocol: 'rest',
    items,
    isRight: (answer) => equals(answer, expected),
    load: (target) => ({ url: url(target), body: Buffer.from(body) }),
    ask: (target) => postAndRead(url(target), body, target.headers),
  }
}

function grpcCases(): Case[] {
  const unary = { status: 0, body: ECHO_BODY, pieces: 1 }
  const stream = { status: 0, body: streamed, pieces: ITEMS }
  return [
    grpc('gRPC unary', 0, unaryCall(), unary),
    grpc('gRPC stream', ITEMS, streamCall(HUNDRED, STREAM_BODY), stream),
  ]
}

function grpc(name: string, items: number, call: ReturnType<typeof unaryCall>, expected: Expected): Case {
  return {
    name,
    protocol: 'grpc',
    items,
    isRight: (answer) => equals(answer, expected),
    load: (target) => ({ url: target.grpcOrigin! + call.path, body: call.message }),
    ask: (target) => callAndRead(target.grpcOrigin!, call, target.headers),
  }
}

function equals({ status, body, pieces }: Answer, expected: Expected): boolean {
  return status === expected.status && body === expected.body && pieces === expected.pieces
}

/**
 * Sends `times` requests at once and compares every answer; resolves with one of them.
 * @throws Error with the first wrong one
 */
export async function verify(target: Target, kase: Case, times: number): Promise<Answer> {
  const answers = await Promise.all(Array.from({ length: times }, () => kase.ask(target)))
  const wrong = answers.find((answer) => !kase.isRight(answer))
  if (wrong === undefined) return answers[0]!
  const seen = `status ${wrong.status}, ${wrong.pieces} pieces, ${wrong.body.length} bytes: ${wrong.body.slice(0, 300)}`
  throw new Error(`${target.name} answers ${kase.name} wrongly: ${seen}`)
}
