import type { Output } from './output.ts'
import type { StartReport, StartReporter } from './start-report.ts'

/** Prints how a start went; the log says the warnings. */
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

/** Tells the command that waits, then lets go of it. What it says is in the log as well. */
export function parentReporter(output: Output): StartReporter {
  const terminal = terminalReporter(output)
  return {
    tell: async (report) => {
      await terminal.tell(report)
      await sendToParent(report)
      if (report.type !== 'starting' && process.connected) process.disconnect()
    },
  }
}

/** A parent that is gone hears nothing: the server goes on without it. */
function sendToParent(report: StartReport): Promise<void> {
  return new Promise((resolve) => {
    if (process.send === undefined || !process.connected) resolve()
    else process.send(report, undefined, undefined, () => resolve())
  })
}
