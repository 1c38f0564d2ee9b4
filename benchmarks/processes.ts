import { once } from 'node:events'
import { createWriteStream, readdirSync, readFileSync } from 'node:fs'
import { createInterface } from 'node:readline'
import { setTimeout as wait } from 'node:timers/promises'
import { execa, type ResultPromise } from 'execa'

const running = new Set<Service>()

/** Ends all processes of the benchmark. */
export async function stopAll(): Promise<void> {
  await Promise.all([...running].map((service) => service.stop()))
}

export interface StartOptions {
  env?: Record<string, string>
  cwd?: string
  /** Milliseconds until the line must appear, default 30000. */
  timeout?: number
}

/** A process that prints when it is ready and runs until it is stopped. */
export class Service {
  readonly pid: number
  readonly #child: ResultPromise
  readonly #lastLines: string[] = []

  private constructor(child: ResultPromise) {
    this.#child = child
    this.pid = child.pid!
  }

  /** Starts `node` with these arguments; resolves with the first line that matches `ready`. */
  static async start(
    args: string[],
    ready: RegExp,
    options: StartOptions = {},
  ): Promise<[Service, RegExpExecArray]> {
    const child = execa(process.execPath, args, {
      env: options.env ?? {},
      cwd: options.cwd ?? process.cwd(),
      stdin: 'ignore',
      buffer: false,
      reject: false,
      forceKillAfterDelay: 8000,
    })
    if (child.pid === undefined) throw new Error(`Cannot start node ${args.join(' ')}`)
    const service = new Service(child)
    running.add(service)
    return [service, await service.#ready(ready, options.timeout ?? 30_000)]
  }

  /**
   * Starts a program whose output goes to a file; resolves when `isReady` says so.
   * @throws Error when it ends before, or is not ready in time
   */
  static async startUntil(
    [command, ...args]: readonly [string, ...string[]],
    isReady: () => Promise<boolean>,
    log: string,
    options: StartOptions = {},
  ): Promise<Service> {
    const output = createWriteStream(log)
    await once(output, 'open')
    const child = execa(command, args, {
      env: options.env ?? {},
      cwd: options.cwd ?? process.cwd(),
      stdin: 'ignore',
      stdout: output,
      stderr: output,
      reject: false,
      forceKillAfterDelay: 8000,
    })
    output.close()
    if (child.pid === undefined) throw new Error(`Cannot start ${command}`)
    const service = new Service(child)
    running.add(service)
    const end = Date.now() + (options.timeout ?? 90_000)
    while (!(await isReady())) {
      const isOver = child.exitCode !== null || child.signalCode !== null
      if (!isOver && Date.now() < end) {
        await wait(100)
        continue
      }
      await service.stop()
      const wrote = readFileSync(log, 'utf8').trimEnd().split('\n').slice(-20).join('\n')
      throw new Error(`${command} ${isOver ? 'ended' : 'was not ready in time'}. It wrote:\n${wrote}`)
    }
    return service
  }

  /**
   * Sends TERM, then KILL after eight seconds; KILL to descendants that are left. Resolves when it has ended.
   */
  async stop(): Promise<void> {
    const [, ...descendants] = processTree(this.pid)
    this.#child.kill('SIGTERM')
    await this.#child
    for (const pid of descendants) end(pid)
    running.delete(this)
  }

  async #ready(ready: RegExp, timeout: number): Promise<RegExpExecArray> {
    const child = this.#child
    return new Promise((resolve, reject) => {
      const late = setTimeout(() => {
        reject(this.#failure('was not ready in time'))
      }, timeout)
      const onLine = (line: string): void => {
        if (this.#lastLines.push(line) > 20) this.#lastLines.shift()
        const match = ready.exec(line)
        if (match === null) return
        clearTimeout(late)
        resolve(match)
      }
      createInterface({ input: child.stdout! }).on('line', onLine)
      createInterface({ input: child.stderr! }).on('line', onLine)
      void child.then(() => {
        running.delete(this)
        clearTimeout(late)
        reject(this.#failure('ended'))
      })
    })
  }

  #failure(what: string): Error {
    return new Error(`${this.#child.spawnfile} ${what}. It wrote:\n${this.#lastLines.join('\n')}`)
  }
}

function end(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL')
  } catch {
    // It has ended.
  }
}

/** CPU time of this process's children that have ended, in milliseconds (ticks of 10). */
export function childCpuMilliseconds(): number {
  const fields = statFields(process.pid)!
  return (Number(fields[13]) + Number(fields[14])) * 10
}

/** A process and all its descendants. Needs /proc. */
export function processTree(pid: number): number[] {
  const children = new Map<number, number[]>()
  for (const name of readdirSync('/proc').filter((entry) => /^\d+$/.test(entry))) {
    const parent = statFields(Number(name))?.[1]
    if (parent === undefined) continue
    children.set(Number(parent), [...(children.get(Number(parent)) ?? []), Number(name)])
  }
  const tree = [pid]
  for (const member of tree) tree.push(...(children.get(member) ?? []))
  return tree
}

/** Resident memory of these processes, in bytes. */
export function residentBytes(pids: readonly number[]): number {
  return sum(pids, (pid) => Number(statFields(pid)?.[21] ?? 0) * 4096)
}

/** CPU time of these processes in milliseconds (ticks of 10). */
export function cpuMilliseconds(pids: readonly number[]): number {
  return sum(pids, (pid) => {
    const fields = statFields(pid)
    return fields === undefined ? 0 : (Number(fields[11]) + Number(fields[12])) * 10
  })
}

function sum(pids: readonly number[], of: (pid: number) => number): number {
  return pids.reduce((total, pid) => total + of(pid), 0)
}

/**
 * /proc/<pid>/stat from the third field (state): [1] parent, [11] user and [12] system ticks, [13] and
 * [14] those of ended children, [21] resident pages.
 */
function statFields(pid: number): string[] | undefined {
  try {
    const line = readFileSync(`/proc/${pid}/stat`, 'latin1')
    return line.slice(line.lastIndexOf(')') + 2).split(' ')
  } catch {
    return undefined // it has ended
  }
}
