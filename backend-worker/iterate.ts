import type { Batch } from './batch.ts'
import { describeThrown } from './handler-error.ts'
import { sendToBatch } from './intermediate.ts'
import { sendLog } from './outlet.ts'
import { notAList } from './output.ts'

export function isAsyncIterable(answer: unknown): answer is AsyncIterable<unknown> {
  return typeof answer === 'object' && answer !== null && Symbol.asyncIterator in answer
}

/**
 * Runs an `async *handle`. Each yield is an intermediate response; the next value is requested when the
 * window has room. Returns the generator's return value as the last items (default: all undefined). When all
 * requests are cancelled it calls the iterator's `return`, so that `finally` blocks run.
 */
export async function iterate(answer: AsyncIterable<unknown>, batch: Batch): Promise<unknown> {
  const iterator = answer[Symbol.asyncIterator]()
  let done = false
  const stop = (): void => {
    if (!done) void stopIterator(iterator, batch)
  }
  batch.onGone = stop
  try {
    for (;;) {
      const next = await iterator.next()
      if (next.done === true) {
        done = true
        return next.value ?? batch.streams.map(() => undefined)
      }
      if (!Array.isArray(next.value)) throw notAList('yield', next.value)
      await sendToBatch(batch, next.value, batch.requestIds, 'Intermediate', 200)
    }
  } catch (thrown) {
    await stopIterator(iterator, batch)
    throw thrown
  } finally {
    done = true
    batch.onGone = undefined
  }
}

async function stopIterator(iterator: AsyncIterator<unknown>, batch: Batch): Promise<void> {
  try {
    await iterator.return?.()
  } catch (thrown) {
    sendLog(batch.outlet, 'warn', `The handler threw while it stopped: ${describeThrown(thrown)}`)
  }
}
