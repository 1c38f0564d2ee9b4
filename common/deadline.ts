import { startTimer } from './timer.ts'
/** Waits for the work for at most `ms` milliseconds. Rejects if the work rejects within that time. */
export async function within(ms: number, work: unknown): Promise<void> {
  let timer: NodeJS.Timeout | undefined
  const limit = new Promise<void>((resolve) => {
    timer = startTimer(resolve, ms)
  })
  try {
    await Promise.race([work, limit])
  } finally {
    clearTimeout(timer)
  }
}
