import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { readLines } from '../../frontend/workers/read-lines.ts'
import { CLI } from './server.ts'
import { tempDir } from './temp.ts'
import { spawn } from './tools.ts'

/** `torchserve-ts dev` on a free port, with a temporary folder of its own. */
export class DevServer {
  readonly process: ChildProcess
  readonly lines: string[] = []
  readonly temp = join(tempDir(), 'tmp')
  readonly #waiting = new Set<() => void>()
  #ended = false

  /**
   * @param cli default: the build of this repository
   * @param more variables of its environment
   * @param port of REST; default: free ones, which it prints once its models have been loaded; `configured`:
   *   none is given
   */
  constructor(
    folder: string,
    cwd: string,
    cli = CLI,
    port: number | 'configured' = 0,
    more: NodeJS.ProcessEnv = {},
  ) {
    mkdirSync(this.temp)
    const env = { ...process.env, NODE_OPTIONS: '', TEMP: this.temp, TMPDIR: this.temp, ...more }
    const stdio: ['ignore', 'pipe', 'pipe'] = ['ignore', 'pipe', 'pipe']
    const args = [cli, 'dev', folder, ...(port === 'configured' ? [] : ['--port', String(port)])]
    this.process = spawn(process.execPath, args, { cwd, env, stdio })
    for (const output of [this.process.stdout!, this.process.stderr!])
      readLines(output, (line) => {
        this.lines.push(line)
        this.#tell()
      })
    this.process.once('close', () => {
      this.#ended = true
      this.#tell()
    })
  }

  get output(): string {
    return this.lines.join('\n')
  }

  get port(): number {
    return Number(/Inference.*http:\/\/127\.0\.0\.1:(\d+)/.exec(this.output)![1])
  }

  get managementPort(): number {
    return Number(/Management REST.*http:\/\/127\.0\.0\.1:(\d+)/.exec(this.output)![1])
  }

  /** Resolves when it has said the text that many times. @throws Error with its output when it ends before */
  async said(text: string, times = 1): Promise<void> {
    while (this.lines.filter((line) => line.includes(text)).length < times) {
      if (this.#ended) throw new Error(`It ended without "${text}":\n${this.output}`)
      await new Promise<void>((resolve) => this.#waiting.add(resolve))
    }
  }

  /** @returns its exit code */
  async stop(): Promise<number | null> {
    if (this.process.exitCode === null && this.process.signalCode === null) {
      this.process.kill('SIGINT')
      await once(this.process, 'exit')
    }
    return this.process.exitCode
  }

  #tell(): void {
    for (const resolve of this.#waiting) resolve()
    this.#waiting.clear()
  }
}
