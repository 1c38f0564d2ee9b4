import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { createWriteStream } from 'node:fs'
import { finished } from 'node:stream/promises'
import { readLines } from '../../frontend/workers/read-lines.ts'
import { spawn } from '../support/tools.ts'

const START_LIMIT_MS = 120_000

/** `torchserve --start --foreground`, as a collection needs it. */
export class TorchServeProcess {
  readonly #child: ChildProcess
  readonly #logged: Promise<void>

  private constructor(child: ChildProcess, log: string) {
    this.#child = child
    const file = createWriteStream(log)
    child.stdout!.pipe(file, { end: false })
    child.stderr!.pipe(file, { end: false })
    child.once('close', () => file.end())
    this.#logged = finished(file)
  }

  /**
   * @param log file that gets everything the server prints
   * @throws Error when it ends, or does not start in time
   */
  static async start(
    flags: string[],
    cwd: string,
    env: NodeJS.ProcessEnv,
    log: string,
  ): Promise<TorchServeProcess> {
    const child = spawn('torchserve', ['--start', '--foreground', ...flags], {
      cwd,
      env,
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    const server = new TorchServeProcess(child, log)
    const ended = once(child, 'exit').then(() => false)
    const late = AbortSignal.timeout(START_LIMIT_MS)
    const tooLate = once(late, 'abort').then(() => false)
    const started = await Promise.race([hasStarted(child), ended, tooLate])
    if (started) return server
    await server.stop('SIGKILL')
    throw new Error(`The server did not start; see ${log}`)
  }

  async stop(signal: NodeJS.Signals = 'SIGTERM'): Promise<void> {
    if (this.#child.exitCode === null && this.#child.signalCode === null) {
      this.#child.kill(signal)
      await once(this.#child, 'exit')
    }
    await this.#logged
  }
}

function hasStarted(child: ChildProcess): Promise<boolean> {
  return new Promise((resolve) => {
    readLines(child.stdout!, (line) => {
      if (line.includes('Model server started.')) resolve(true)
    })
  })
}
