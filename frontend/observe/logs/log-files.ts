import { join } from 'node:path'
import type { LogFileName, Settings } from '../../config/settings.ts'
import { droppedAuditLine } from './audit-log.ts'
import { LogFile } from './log-file.ts'

/** The open log files, by name. */
export type LogFiles = Partial<Record<LogFileName, LogFile>>

/**
 * Opens the configured log files. A file that cannot be opened, for example on a read-only file system,
 * causes a warning, and the server starts without it.
 */
export function openLogFiles(
  settings: Pick<Settings, 'logLocation' | 'metricsLocation' | 'logFiles' | 'logKeepBytes'>,
  warn: (message: string) => void,
): LogFiles {
  const files: LogFiles = {}
  const { logKeepBytes: keepBytes } = settings
  for (const name of settings.logFiles) {
    const folder = name.endsWith('_metrics') ? settings.metricsLocation : settings.logLocation
    try {
      const droppedLine = name === 'audit_log' ? { droppedLine: droppedAuditLine } : {}
      files[name] = new LogFile(join(folder, `${name}.log`), { warn, keepBytes, ...droppedLine })
    } catch (error) {
      warn(`${name}.log is not written: ${(error as Error).message}`)
    }
  }
  return files
}

/** Opens each file by its name again: a program such as logrotate has moved them. */
export function reopenLogFiles(files: LogFiles): void {
  for (const file of Object.values(files)) file.reopen()
}

/** Milliseconds that writing the last lines may take. */
const END_MS = 1000

/** Writes waiting lines and closes the files. */
export async function endLogFiles(files: LogFiles): Promise<void> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise((resolve) => {
    timer = setTimeout(resolve, END_MS)
  })
  await Promise.race([late, Promise.all(Object.values(files).map((file) => file.end()))])
  clearTimeout(timer)
  for (const file of Object.values(files)) file.endNow()
}
