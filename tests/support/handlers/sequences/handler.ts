import type { Context, HandlerRequest, HandlerResponse } from 'torchserve-ts'
import { opened } from '../gate.ts'

interface Sequence {
  sum: number
  /** Whether its streams end with their next step. */
  stop: boolean
}

/**
 * Sums the numbers of each sequence. The body of a request: a number (text or JSON) is added; `end` ends the
 * sequence; `crash <gate>` ends the worker when the gate opens; `wait <gate> <number>` adds the number then;
 * `stream` (continuous batching) returns the sum in every step until `stop` comes.
 */
export async function handle(requests: HandlerRequest[], context: Context): Promise<HandlerResponse[]> {
  const words = requests.map(read)
  for (const [word, gate] of words) if (word === 'wait' || word === 'crash') await opened(gate!)
  if (words.some(([word]) => word === 'crash')) process.exit(3)
  const answers = words.map((one, i) => answer(one, i, context))
  if (words.some(([word]) => word === 'stream')) await new Promise((resolve) => setTimeout(resolve, 5))
  return answers
}

function answer([word, , number]: string[], i: number, context: Context): HandlerResponse {
  const id = context.sequenceId(i)!
  const sequence = stateOf(id, context)
  context.setResponseHeader(i, 'x-pid', String(process.pid))
  switch (word) {
    case 'end':
      context.endSequence(i)
      context.cache.delete(`sum of ${id}`)
      return 'ended'
    case 'stop':
      sequence.stop = true
      return 'stopped'
    case 'stream':
      context.setStreamNext(i, !sequence.stop)
      return `${sequence.sum}\n`
    default:
      sequence.sum += Number(word === 'wait' ? number : word)
      return String(sequence.sum)
  }
}

function stateOf(id: string, context: Context): Sequence {
  const key = `sum of ${id}`
  const known = context.cache.get(key) as Sequence | undefined
  if (known !== undefined) return known
  const sequence = { sum: 0, stop: false }
  context.cache.set(key, sequence)
  return sequence
}

function read({ body, data }: HandlerRequest): string[] {
  const given = body ?? data
  const text = given instanceof Uint8Array ? new TextDecoder().decode(given) : String(given)
  return text.split(' ')
}
