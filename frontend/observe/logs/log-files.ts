import { join } from 'node:path'
import { within } from '../../../common/timer.ts'
import type { LogFileName, Settings } from '../../config/settings.ts'
import { droppedAuditLine } from './audit-log.ts'
import type { ConsoleWriter } from './console-writer.ts'
import type { LineWriter } from './appender.ts'
import { LogFile } from './log-file.ts'

/** The open log files, by name. */
export type LogFiles = Partial<Record<LogFileName, LogFile>>

/** Where the lines of each log go. */
export type Logs = Partial<Record<LogFileName, LineWriter & Pick<LogFile, 'lost'>>>

/** Logs that do not come from the server's logger, and the loggers that TorchServe has for them. */
const OTHERS = {
  access_log: 'ACCESS_LOG',
  ts_metrics: 'TS_METRICS',
  model_metrics: 'MODEL_METRICS',
  audit_log: 'AUDIT_LOG',
} as const
/** The logs of which some also go to the console. The caller ends the files and the console. */
export function withConsole(
  files: LogFiles,
  { logConsole, logFormat }: Pick<Settings, 'logConsole' | 'logFormat'>,
  console: ConsoleWriter,
): Logs {
  const logs: Logs = { ...files }
  const shaped = logFormat === 'text' ? textLine : jsonLine
  for (const [name, logger] of Object.entries(OTHERS) as [keyof typeof OTHERS, string][]) {
    if (!logConsole.includes(name) || console.untilStarted) continue
    const file = files[name]
    logs[name] = {
      get lost() {
        return file?.lost ?? 0
      },
      write: (line) => {
        file?.write(line)
        console.write(name === 'audit_log' ? line : shaped(line, logger))
      },
    }
  }
  return logs
}

/** `<time> - <message>` of a file, as TorchServe's console has it. */
function textLine(line: string, logger: string): string {
  const at = line.indexOf(' - ')
  return `${line.slice(0, at)} [INFO ] main ${logger}${line.slice(at)}`
}

/** The same as the server's log has it in JSON. */
function jsonLine(line: string, logger: string): string {
  const msg = line.slice(line.indexOf(' - ') + 3, -1)
  return `${JSON.stringify({ level: 30, time: new Date().toISOString(), thread: 'main', logger, msg })}\n`
}

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

/** Writes waiting lines and closes the files; what takes longer than a second goes on until the exit. */
export async function endLogFiles(files: LogFiles): Promise<void> {
  await within(END_MS, Promise.all(Object.values(files).map((file) => file.end())))
}
