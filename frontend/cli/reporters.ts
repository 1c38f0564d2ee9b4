import type { Output } from './output.ts'

/** Prints the result of the start. Warnings go to the log. */
export function terminalReporter(output: Output): StartReporter {
  return {
    tell: (report) => {
      if (report.type === 'started') report.lines.forEach((line) => output.out(line))
      else if (report.type === 'failed') printFailure(report, output)
      return Promise.resolve()
    },
  }
}

export function printFailure(report: Extract<StartReport, { type: 'failed' }>, output: Output): void {
  output.err(`torchserve-ts: ${report.message}`)
  if (report.detail !== undefined) output.err(report.detail)
}

/** Reports to the waiting command, then disconnects from it. Without one, prints the result itself. */
export function parentReporter(output: Output): StartReporter {
  const terminal = terminalReporter(output)
  return {
    tell: async (report) => {
      if (!(await sentToParent(report))) await terminal.tell(report)
      if (report.type !== 'starting' && process.connected) process.disconnect()
    },
  }
}

/** False when the parent has ended; the server continues. */
function sentToParent(report: StartReport): Promise<boolean> {
  return new Promise((resolve) => {
    if (process.send === undefined || !process.connected) resolve(false)
    else process.send(report, undefined, undefined, (error) => resolve(error === null))
  })
}

/** Messages from a background server to the command that started it. */
export type StartReport =
  /** The settings are read; `limitMs` bounds the rest of the start. */
  | { type: 'starting'; limitMs: number }
  | { type: 'started'; lines: string[] }
  | { type: 'failed'; message: string; detail?: string }

/** Receives the progress of a start: the terminal, or the command that waits for a background server. */
export interface StartReporter {
  /** Resolves when the report was sent, so that the process may exit. */
  tell(report: StartReport): Promise<void>
}

export function isStartReport(message: unknown): message is StartReport {
  if (typeof message !== 'object' || message === null || !('type' in message)) return false
  return message.type === 'starting' || message.type === 'started' || message.type === 'failed'
}
