import { Metadata } from '@grpc/grpc-js'
import {
  type GrpcDuplex,
  inferenceClient,
  type PredictionResponse,
  type PredictionsRequest,
} from '../../support/grpc-clients.ts'
import type { Random } from '../../support/random.ts'
import { rawRequest } from '../../support/raw-http.ts'
import type { Caller } from '../callers.ts'
import { SUMS } from '../models.ts'
import { inTime, type Lane, newId } from './lane.ts'

const HEADER = 'ts_request_sequence_id'
/** Sequences that a call of StreamPredictions2 has at a time. */
const AT_ONCE = 3

/** A sequence as its client knows it. */
interface Sequence {
  readonly id: string
  readonly numbers: readonly number[]
}

/** Runs sequences, over REST and in calls of StreamPredictions2; each sum tells the numbers before it. */
export async function sums(lane: Lane, signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    const { random, callers } = lane
    const drawn = Array.from({ length: AT_ONCE }, () => draw(random))
    await callers.ask(random, SUMS, (caller) =>
      random.chance(0.5) ? overRest(lane, caller, drawn[0]!) : overGrpc(lane, caller, drawn),
    )
  }
}

function draw(random: Random): Sequence {
  const numbers = Array.from({ length: random.integer(1, 10) }, () => random.integer(1, 1_000))
  return { id: newId(), numbers }
}

/** What a model must answer to these numbers and the word that ends them. */
function expected({ numbers }: Sequence): string[] {
  let sum = 0
  return [...numbers.map((number) => String((sum += number))), 'ended']
}

async function overRest({ server, ledger }: Lane, caller: Caller, sequence: Sequence): Promise<void> {
  const got: string[] = []
  const pids = new Set<string>()
  try {
    for (const word of [...sequence.numbers, 'end']) {
      const headers = { ...caller.headers, 'content-type': 'text/plain', [HEADER]: sequence.id }
      const path = `/predictions/${SUMS}`
      const answer = await inTime(rawRequest(server.ports.inference, path, { headers, body: String(word) }))
      got.push(answer.status === 200 && answer.complete ? answer.body : `${answer.status} ${answer.body}`)
      pids.add(answer.headers['x-pid'] ?? 'none')
    }
  } catch (error) {
    got.push(String(error))
  }
  const workers = pids.size > 1 ? ` of ${pids.size} workers` : ''
  settle(ledger, 'sequence, REST', expected(sequence), got.join(' ') + workers)
}

async function overGrpc({ server, ledger }: Lane, caller: Caller, sequences: Sequence[]): Promise<void> {
  const client = inferenceClient(server.ports.grpcInference)
  const got = new Map(sequences.map(({ id }): [string, string[]] => [id, []]))
  const stream = client.StreamPredictions2(Metadata.fromHttp2Headers(caller.headers))
  let end = ''
  try {
    const ended = inTime(readInto(stream, got))
    const longest = Math.max(...sequences.map(({ numbers }) => numbers.length))
    for (let k = 0; k <= longest; k += 1)
      for (const { id, numbers } of sequences) if (k <= numbers.length) send(stream, id, numbers[k] ?? 'end')
    stream.end()
    await ended
  } catch (error) {
    end = ` ${String(error)}`
  } finally {
    client.close()
  }
  for (const sequence of sequences)
    settle(ledger, 'sequence, gRPC', expected(sequence), got.get(sequence.id)!.join(' ') + end)
}

function send(
  stream: GrpcDuplex<PredictionsRequest, PredictionResponse>,
  id: string,
  word: number | string,
): void {
  stream.write({ model_name: SUMS, input: { data: Buffer.from(String(word)) }, sequence_id: id })
}

async function readInto(
  stream: AsyncIterable<PredictionResponse>,
  got: Map<string, string[]>,
): Promise<void> {
  for await (const { sequence_id: id = '', prediction, status } of stream) {
    const told = status?.code ? `${status.code} ${status.message}` : prediction.toString()
    got.get(id)?.push(told)
  }
}

function settle(ledger: Lane['ledger'], name: string, wanted: string[], got: string): void {
  const isRight = got === wanted.join(' ')
  const what = `expected ${wanted.join(' ')}, got ${got}`
  ledger.answer(name, isRight ? 'finished' : 'failed', isRight ? undefined : 'a wrong answer', what)
}
