import { setTimeout as wait } from 'node:timers/promises'
import type { Output } from './output.ts'
import { findRunning, pidFilePath, removePidFile, tempDirOf } from './pid-file.ts'
import { POLL_MS, isServerProcess } from './server-process.ts'

/**
 * Stops the server of the temporary folder: SIGTERM, so that running requests finish, then SIGKILL after the
 * time that its pid file names.
 * @returns the exit status: 0 also when no server runs, as in TorchServe
 */
export async function stopServer(output: Output, env: NodeJS.ProcessEnv): Promise<number> {
  const path = pidFilePath(tempDirOf(env))
  const running = findRunning(path)
  if (running === undefined) {
    output.out('TorchServe-TS is not currently running.')
    return 0
  }
  if (!signal(running.pid, 'SIGTERM')) {
    output.err(`torchserve-ts: no permission to stop process ${running.pid}`)
    return 1
  }
  const ended = await hasEnded(running.pid, running.stopMs)
  if (!ended) signal(running.pid, 'SIGKILL')
  removePidFile(path, running.pid)
  if (ended) output.out('TorchServe-TS has stopped.')
  else output.err(`torchserve-ts: did not stop within ${running.stopMs / 1000} s and was killed`)
  return ended ? 0 : 1
}

async function hasEnded(pid: number, limitMs: number): Promise<boolean> {
  const limit = performance.now() + limitMs
  while (isServerProcess(pid)) {
    if (performance.now() > limit) return false
    await wait(POLL_MS)
  }
  return true
}

function signal(pid: number, name: 'SIGTERM' | 'SIGKILL'): boolean {
  try {
    process.kill(pid, name)
    return true
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'ESRCH'
  }
}
