import { ServeError } from '../../common/errors.ts'
import { startTimer } from '../../common/timer.ts'

/** Waits for a part of a worker's start. @throws ServeError WORKER_START_FAILED with `message` after `ms` */
export async function withinTime<T>(work: Promise<T>, ms: number, message: string): Promise<T> {
  let timer: NodeJS.Timeout | undefined
  const expired = new Promise<never>((_resolve, reject) => {
    timer = startTimer(() => {
      reject(new ServeError('WORKER_START_FAILED', message, { publicCause: 'it was not loaded in time' }))
    }, ms)
  })
  try {
    return await Promise.race([work, expired])
  } finally {
    clearTimeout(timer)
  }
}
