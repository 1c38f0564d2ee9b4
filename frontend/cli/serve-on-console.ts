import { ConsoleWriter } from '../observe/logs/console-writer.ts'
import type { StartServer } from '../server-api.ts'
import type { BackgroundConsole } from './background.ts'
import { type Output, printed } from './output.ts'
import { parentReporter, terminalReporter } from './reporters.ts'
import { serve, type Serving } from './serve.ts'

/**
 * Serves in this process, with its log on stdout.
 * @param background how long it writes to stdout, if another process waits for the start
 * @returns the exit status
 */
export async function serveOnConsole(
  prepare: () => Promise<Serving>,
  loadServer: () => Promise<StartServer>,
  background?: BackgroundConsole,
): Promise<number> {
  const stdout = new ConsoleWriter(1, background === 'until started')
  const stderr = new ConsoleWriter(2)
  const lines: Output = {
    out: (line) => stdout.write(printed(line)),
    err: (line) => stderr.write(printed(line)),
  }
  const reporter = background === undefined ? terminalReporter(lines) : parentReporter(lines)
  const status = await serve(prepare, loadServer, reporter, stdout)
  await Promise.all([stdout.end(), stderr.end()])
  return status
}
