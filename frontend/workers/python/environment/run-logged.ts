import { problemOf, startProgram } from '../../../../common/start-program.ts'
import { MARK, orphanGuard } from '../../orphan-guard.ts'
import { killGroup } from '../../processes.ts'
import { readLines } from '../../read-lines.ts'
import { startTimer } from '../../../../common/timer.ts'
import type { Program } from '../../launch.ts'

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
 * Runs a command, such as pip, in its own process group. What it started ends with it, and with the server.
 * @returns undefined on success, else the last lines of its output
 */
export async function runLogged({ command, args }: Program, run: LoggedRun): Promise<string | undefined> {
  const { env, cwd, limitMs, signal, log } = run
  const mark = orphanGuard.newMark()
  const { child, ended } = startProgram(command, args, {
    env: { ...env, [MARK]: mark },
    cwd,
    stdio: ['ignore', 'pipe', 'pipe'],
    detached: true,
  })
  const end = (): void => killGroup(child?.pid)
  orphanGuard.add(child?.pid ?? -1)
  const timer = startTimer(end, limitMs)
  signal.addEventListener('abort', end)
  if (signal.aborted) end()
  const last: string[] = []
  for (const output of [child?.stdout, child?.stderr]) {
    if (!output) continue
    readLines(output, (line) => {
      log(line)
      if (last.push(line) > KEPT_LINES) last.shift()
    })
  }
  const problem = problemOf(await ended)
  clearTimeout(timer)
  await orphanGuard.reap(mark)
  orphanGuard.remove(child?.pid ?? -1)
  signal.removeEventListener('abort', end)
  return problem && [...last, `${command}: ${problem}`].join('\n')
}
