import { ConsoleWriter } from '../observe/logs/console-writer.ts'
import type { StartServer } from '../server-api.ts'
import { type Output, printed } from './output.ts'
import { parentReporter, terminalReporter } from './reporters.ts'
import { serve, type Serving } from './serve.ts'

/**
 * Serves in this process, with its log on stdout.
 * @param where `background`: another process waits for the start
 * @returns the exit status
 */
export async function serveOnConsole(
  prepare: () => Promise<Serving>,
  loadServer: () => Promise<StartServer>,
  where: 'terminal' | 'background',
): Promise<number> {
  const stdout = new ConsoleWriter(1)
  const stderr = new ConsoleWriter(2)
  const lines: Output = {
    out: (line) => stdout.write(printed(line)),
    err: (line) => stderr.write(printed(line)),
  }
  const reporter = where === 'background' ? parentReporter(lines) : terminalReporter(lines)
  const status = await serve(prepare, loadServer, reporter, stdout)
  await Promise.all([stdout.end(), stderr.end()])
  return status
}
