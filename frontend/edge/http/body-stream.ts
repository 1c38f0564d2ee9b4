import { type Readable, Transform, type TransformCallback } from 'node:stream'
import { ServeError } from '../../../common/errors.ts'
import { startTimer } from '../../../common/timer.ts'
import { ChunkAllowance, TINY_CHUNKS } from './chunk-allowance.ts'
import type { Exchange } from './exchange.ts'

/** Milliseconds without a byte. */
const IDLE_MS = 60_000

export interface BodyTime {
  /** Milliseconds for the whole body, and the configuration key that sets them. */
  readonly limitMs: number
  readonly key: string
  /** Milliseconds without a byte. Default one minute. */
  readonly idleMs?: number
}

/**
 * The body of a request as it arrives, for bodies too large for memory; first sends `100 Continue` if the
 * client waits for it. The client is read no faster than the reader reads. It fails with DEADLINE_EXCEEDED
 * when the body takes too long, and INVALID_ARGUMENT for too many tiny chunks. Whoever destroys it can still
 * answer.
 */
export function bodyStream(exchange: Exchange, { limitMs, key, idleMs = IDLE_MS }: BodyTime): Readable {
  const { req, res, connection } = exchange
  const allowance = new ChunkAllowance()
  const body = new Transform({
    transform(chunk: Buffer, _encoding, pass: TransformCallback) {
      idle.refresh()
      if (allowance.take(chunk)) pass(null, chunk)
      else pass(new ServeError('INVALID_ARGUMENT', TINY_CHUNKS))
    },
  })
  const late = (what: string): void => void body.destroy(new ServeError('DEADLINE_EXCEEDED', what))
  const whole = startTimer(() => late(`The body took longer than ${limitMs / 1000} s (${key})`), limitMs)
  const idle = startTimer(() => late(`The body stood still for ${idleMs / 1000} s`), idleMs)
  connection.limitsOwnTime = true
  body.once('close', () => {
    connection.limitsOwnTime = false
    clearTimeout(whole)
    clearTimeout(idle)
  })
  if (req.headers.expect !== undefined) res.writeContinue()
  // A pipeline would destroy the request, and with it the connection, before the answer.
  req.pipe(body)
  return body
}
