import { execa } from 'execa'
import { killGroup } from '../../kill-session.ts'
import { readLines } from '../../read-lines.ts'

export interface LoggedRun {
  readonly env: Record<string, string>
  readonly cwd: string
  readonly limitMs: number
  /** Ends it. */
  readonly signal: AbortSignal
  /** Gets what it prints on both outputs, line by line. */
  readonly log: (line: string) => void
}

const KEPT_LINES = 20

/**
 * Runs a command, for example pip, in a process group of its own, so that nothing of it is left when it is ended.
 * @returns undefined when it succeeded, else the last lines that it printed
 */
export async function runLogged(
  command: string,
  args: readonly string[],
  run: LoggedRun,
): Promise<string | undefined> {
  const { env, cwd, limitMs, signal, log } = run
  const child = execa(command, args, {
    ...{
      env,
      cwd,
      extendEnv: false,
      reject: false,
      all: true,
      buffer: false,
      stdin: 'ignore',
      detached: true,
    },
  })
  const end = (): void => killGroup(child.pid)
  const timer = setTimeout(end, limitMs)
  signal.addEventListener('abort', end)
  if (signal.aborted) end()
  const last: string[] = []
  readLines(child.all, (line) => {
    log(line)
    if (last.push(line) > KEPT_LINES) last.shift()
  })
  const { failed, shortMessage } = await child
  clearTimeout(timer)
  signal.removeEventListener('abort', end)
  return failed ? [...last, shortMessage].join('\n') : undefined
}
