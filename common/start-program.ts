import { type ChildProcess, spawn, type SpawnOptions } from 'node:child_process'
import { text } from 'node:stream/consumers'
import { startTimer } from './timer.ts'

/** How a program ended. */
export interface ProgramEnd {
  readonly exitCode: number | undefined
  readonly signal: NodeJS.Signals | undefined
  /** Why it could not be started; undefined: it was. */
  readonly failure: NodeJS.ErrnoException | undefined
}

export interface StartedProgram {
  /** Undefined where it could not be started. It may lack its streams then, too. */
  readonly child: ChildProcess | undefined
  /** Resolves when it has ended and its outputs are closed. Never rejects. */
  readonly ended: Promise<ProgramEnd>
}

/**
 * child_process.spawn for a server that must outlive faults of its machine: Node throws some reasons why
 * a program cannot be started, emits others as errors that end the process where nobody listens, and without
 * descriptors leaves out the streams. Here each of them is an end of the program.
 */
export function startProgram(
  command: string,
  args: readonly string[],
  options: SpawnOptions,
): StartedProgram {
  const failed = (failure: Error): ProgramEnd => ({ exitCode: undefined, signal: undefined, failure })
  let child: ChildProcess
  try {
    child = spawn(command, args, options)
  } catch (error) {
    return { child: undefined, ended: Promise.resolve(failed(error as Error)) }
  }
  const ended = new Promise<ProgramEnd>((resolve) => {
    child.on('error', (error) => {
      if (child.pid === undefined) resolve(failed(error))
    })
    child.once('close', (exitCode, signal) => {
      if (child.pid === undefined) return
      resolve({ exitCode: exitCode ?? undefined, signal: signal ?? undefined, failure: undefined })
    })
  })
  return { child, ended }
}

/** What a program printed, and how it ended. */
export interface ProgramRun extends ProgramEnd {
  readonly stdout: string
  readonly stderr: string
  /** It was killed because its time was over. */
  readonly timedOut: boolean
  /** Why it failed, in one line; undefined: it exited with 0. */
  readonly problem: string | undefined
}

/** Runs a program to its end, without input. Never rejects. @param timeoutMs after which it is killed */
export async function runProgram(
  command: string,
  args: readonly string[],
  { timeoutMs, ...options }: Pick<SpawnOptions, 'cwd' | 'env' | 'detached'> & { timeoutMs: number },
): Promise<ProgramRun> {
  const { child, ended } = startProgram(command, args, { ...options, stdio: ['ignore', 'pipe', 'pipe'] })
  let timedOut = false
  const timer = startTimer(() => {
    timedOut = true
    child?.kill('SIGKILL')
    // Its children may hold them.
    child?.stdout?.destroy()
    child?.stderr?.destroy()
  }, timeoutMs)
  const read = (stream: ChildProcess['stdout'] | undefined): Promise<string> =>
    stream ? text(stream).catch(() => '') : Promise.resolve('')
  const [stdout, stderr, end] = await Promise.all([read(child?.stdout), read(child?.stderr), ended])
  clearTimeout(timer)
  return { ...end, stdout, stderr, timedOut, problem: problemOf(end) }
}

/** Why a program failed, in one line; undefined: it exited with 0. */
export function problemOf({ exitCode, signal, failure }: ProgramEnd): string | undefined {
  if (failure !== undefined) return failure.message
  if (signal !== undefined) return `it was killed by ${signal}`
  return exitCode === 0 ? undefined : `it exited with code ${exitCode}`
}
