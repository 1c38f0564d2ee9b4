import type { Logger } from '../../frontend/observe/logs/logger.ts'

export const FLOOD_LINES = 3_000

/** Logs more than may wait for the console, and slowly enough for the disk. */
export async function flood(log: Logger): Promise<void> {
  for (let line = 1; line <= FLOOD_LINES; line++) {
    log.info(`line ${line} ${'x'.repeat(4096)}`)
    if (line % 50 === 0) await new Promise((resolve) => setTimeout(resolve, 5))
  }
}
