import { execa } from 'execa'
import { killGroup } from '../../kill-session.ts'
import { readLines } from '../../read-lines.ts'
import { startTimer } from '../../../../common/timer.ts'

export interface LoggedRun {
  readonly env: Record<string, string>
  readonly cwd: string
  readonly limitMs: number
  /** Ends the command. */
  readonly signal: AbortSignal
  /** Gets both outputs line by line. */
  readonly log: (line: string) => void
}

const KEPT_LINES = 20

/**
 * Runs a command, such as pip, in its own process group, so that it can be ended with all its children.
 * @returns undefined on success, else the last lines of its output
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
  const timer = startTimer(end, limitMs)
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
