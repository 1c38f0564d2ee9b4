import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach } from '@jest/globals'
import { CLI } from './server.ts'
import { tempDir } from './temp.ts'
import { execa, spawn } from './tools.ts'

const children: ChildProcess[] = []

afterEach(async () => {
  for (const child of children.splice(0)) {
    if (child.exitCode !== null || child.signalCode !== null) continue
    child.kill('SIGKILL')
    // Before the folder that it writes into is removed.
    await once(child, 'exit')
  }
})

/** `torchserve-ts serve` on a free port, in a folder of its own. */
export class Serve {
  readonly folder: string
  readonly process: ChildProcess
  output = ''
  readonly #env: Record<string, string>
  readonly status: Promise<number | null>

  constructor(
    args: string[],
    {
      folder = tempDir(),
      env = {},
      cli = CLI,
    }: { folder?: string; env?: Record<string, string>; cli?: string } = {},
  ) {
    this.folder = folder
    mkdirSync(join(folder, 'tmp'), { recursive: true })
    this.#env = { NODE_OPTIONS: '', TEMP: join(folder, 'tmp'), XDG_CACHE_HOME: join(folder, 'cache'), ...env }
    const command = [cli, 'serve', ...args, '--port', '0']
    // The threads of the GGUF runtime wait for each other actively: on a busy machine one is faster than two.
    const [core] = readFileSync('/proc/self/status', 'utf8').match(/(?<=^Cpus_allowed_list:\s*)\d+/m)!
    this.process = spawn('taskset', ['--cpu-list', core, process.execPath, ...command], {
      cwd: folder,
      env: { ...process.env, ...this.#env },
    })
    children.push(this.process)
    const collect = (chunk: Buffer): string => (this.output += chunk.toString())
    this.process.stdout!.on('data', collect)
    this.process.stderr!.on('data', collect)
    this.status = new Promise((resolve) => this.process.once('close', resolve))
  }

  /** Resolves when it has written the text. @throws Error with its output when it ends before */
  wrote(text: string): Promise<void> {
    return new Promise((resolve, reject) => {
      const look = (): void => (this.output.includes(text) ? resolve() : undefined)
      this.process.stdout!.on('data', look)
      this.process.stderr!.on('data', look)
      void this.status.then(() => reject(new Error(`It ended without "${text}":\n${this.output}`)))
      look()
    })
  }

  /** Runs the command lines that it has printed. @returns the answers by API */
  async curls(): Promise<Map<string, string>> {
    const lines = [...this.output.matchAll(/^([\w ]+): +(curl .*)$/gm)]
    const answers = lines.map(async ([, api, line]) => {
      const { stdout } = await execa('sh', ['-c', `${line} --silent --show-error --fail-with-body`])
      return [api!, stdout] as const
    })
    return new Map(await Promise.all(answers))
  }

  async stop(): Promise<number | null> {
    this.process.kill('SIGINT')
    return this.status
  }

  /** What a command prints beside it. */
  async run(...args: string[]): Promise<string> {
    const env = { ...process.env, ...this.#env }
    const { stdout } = await execa(process.execPath, [CLI, ...args], { cwd: this.folder, env })
    return stdout
  }
}
