/** Waits for the work, but no longer than `ms`. Rejects as the work does, while it waits. */
export async function within(ms: number, work: unknown): Promise<void> {
  let timer: NodeJS.Timeout | undefined
  const limit = new Promise<void>((resolve) => {
    timer = setTimeout(resolve, ms)
  })
  try {
    await Promise.race([work, limit])
  } finally {
    clearTimeout(timer)
  }
}
