import { setTimeout as sleep } from 'node:timers/promises'
import {
  PredictionException,
  sendIntermediatePredictResponse,
  type Context,
  type HandlerResponse,
} from 'torchserve-ts'

/** One faulty request. */
export interface Case {
  /** The request's JSON. */
  options: Record<string, unknown>
  index: number
  context: Context
}

/** An answer, or a promise of one. */
type Fault = (c: Case) => HandlerResponse

/** Memory that stays taken. */
const eaten: Buffer[] = []
/** What the latest send_after_end or unawaited saw; `seen` answers it. */
let seen: unknown

export const faults: Record<string, Fault | undefined> = {
  none: () => 'ok',
  seen: () => ({ seen }),
  pid: () => String(process.pid),

  /** Throws; `items` (default 0) are sent before. */
  throw: async (c) => {
    await send(c, number(c, 'items', 0))
    throw new Error('faulty: thrown as it was told')
  },
  /** Answers with an error of its own: `status`, `message`. */
  reject: (c) => {
    throw new PredictionException(text(c, 'message', 'faulty: rejected'), number(c, 'status', 400))
  },
  /** An Error as answer. */
  error_item: () => new Error('faulty: an error as answer'),
  /** Its own status and body. */
  status: (c) => {
    c.context.setResponseStatus(c.index, number(c, 'status', 418))
    return text(c, 'body', 'a status of its own')
  },

  /** Never answers and ignores its abort; `items` are sent before. */
  hang: async (c) => {
    await send(c, number(c, 'items', 0))
    return new Promise(() => undefined)
  },
  /** Ignores its abort and goes on sending, one item every `delay` ms. */
  deaf: async (c) => {
    for (;;) {
      await send(c, 1).catch(() => undefined)
      await sleep(number(c, 'delay', 10))
    }
  },
  /** Blocks the process for `ms` (default: for ever) after `items`. */
  busy: async (c) => {
    await send(c, number(c, 'items', 0))
    await sleep(20)
    const end = performance.now() + number(c, 'ms', Infinity)
    while (performance.now() < end);
    return 'busy no more'
  },

  /** Leaves with `code` after `items`. */
  exit: async (c) => {
    await send(c, number(c, 'items', 0))
    process.stderr.write('faulty: leaving as it was told\n')
    await sleep(20)
    process.exit(number(c, 'code', 7))
  },
  /** Kills its process after `items`. */
  kill: async (c) => {
    await send(c, number(c, 'items', 0))
    await sleep(20)
    process.kill(process.pid, 'SIGKILL')
    return new Promise(() => undefined)
  },
  /** Takes memory, `step` bytes (default 64 MiB) at a time, up to `bytes` (default: all there is). */
  eat_memory: async (c) => {
    const limit = number(c, 'bytes', Infinity)
    const step = number(c, 'step', 64 * 1024 * 1024)
    for (let taken = 0; taken < limit; taken += step) {
      eaten.push(Buffer.alloc(step, 1))
      await sleep(1)
    }
    return 'full'
  },
  /** Fills the JavaScript heap until V8 ends the process. */
  eat_heap: () => {
    const kept: number[][] = []
    for (;;) kept.push(new Array<number>(1_000_000).fill(1.5))
  },
  /** An exception that nobody catches, outside of the request. */
  uncaught: (c) => {
    setTimeout(
      () => {
        throw new Error('faulty: uncaught')
      },
      number(c, 'delay', 0),
    )
    return 'an exception follows'
  },
  /** A rejection that nobody handles. */
  unhandled: () => {
    void Promise.reject(new Error('faulty: unhandled'))
    return 'a rejection was left alone'
  },

  /** Sends once more when its answer is given; `seen` tells how that ended. */
  send_after_end: (c) => {
    seen = 'nothing yet'
    setTimeout(() => void note(send(c, 1)), number(c, 'delay', 20))
    return 'the answer'
  },
  /** Sends `items` of `size` bytes without waiting. */
  unawaited: async (c) => {
    seen = 'nothing yet'
    const all: Promise<void>[] = []
    for (let k = 1; k <= number(c, 'items', 10); k += 1) all.push(sendItem(c, `${k}\n`))
    const outcomes = await Promise.allSettled(all)
    const failed = outcomes.find((outcome) => outcome.status === 'rejected')
    seen =
      failed === undefined ? 'all sent' : failed.reason instanceof Error ? failed.reason.message : 'failed'
    if (failed !== undefined) throw failed.reason
    return ''
  },
  /** Sends to a request id that is not its own. */
  foreign_id: async (c) => {
    await sendIntermediatePredictResponse(['x'], ['not-an-id'], 'Intermediate', 200, c.context)
    return ''
  },

  /** Two answers to one request. */
  extra_answers: () => ['one', 'two'],
  /** Values that cannot be encoded. */
  circular: () => {
    const value: Record<string, unknown> = {}
    value['self'] = value
    return value
  },
  undefined_answer: () => undefined,
  /** An answer of `size` bytes. */
  large: (c) => Buffer.alloc(number(c, 'size', 1024), 0x78),
  /** A header that could split the response. */
  bad_header: (c) => {
    c.context.setResponseHeader(c.index, 'x-bad', 'a\r\nx-injected: 1')
    return 'with a bad header'
  },
}

async function send(c: Case, items: number): Promise<void> {
  for (let k = 1; k <= items; k += 1) await sendItem(c, `${k}\n`)
}

function sendItem(c: Case, head: string): Promise<void> {
  const items: string[] = []
  items[c.index] = head.padEnd(number(c, 'size', 0))
  return sendIntermediatePredictResponse(
    items,
    { [c.index]: c.context.requestIds[c.index]! },
    'Intermediate',
    200,
    c.context,
  )
}

async function note(sending: Promise<void>): Promise<void> {
  try {
    await sending
    seen = 'sent'
  } catch (error) {
    seen = error instanceof Error ? error.message : String(error)
  }
}

function number(c: Case, name: string, absent: number): number {
  const value = c.options[name]
  return typeof value === 'number' ? value : absent
}

function text(c: Case, name: string, absent: string): string {
  const value = c.options[name]
  return typeof value === 'string' ? value : absent
}
