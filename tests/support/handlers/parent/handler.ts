// eslint-disable-next-line @typescript-eslint/no-restricted-imports -- a handler starts what it likes
import { execFileSync, spawn } from 'node:child_process'
import type { HandlerRequest } from 'torchserve-ts'

const ELSEWHERE = 'setsid /bin/sleep 600 >/dev/null 2>&1 & echo $!'

/**
 * Starts processes that do not end by themselves, and says their pids: one with an empty environment, one
 * with a session of its own, and a daemon. Or ends as `op` says.
 */
export async function handle([request]: HandlerRequest[]): Promise<unknown[]> {
  const { op } = request?.['body'] as { op: string }
  if (op === 'exit') process.exit(0)
  if (op === 'hang') await new Promise(() => undefined)
  const child = spawn('/bin/sleep', ['600'], { stdio: 'ignore', env: {} })
  const session = spawn('/bin/sleep', ['600'], { stdio: 'ignore', detached: true })
  const daemon = Number(execFileSync('/bin/sh', ['-c', ELSEWHERE]).toString())
  return [{ pids: [child.pid, session.pid, daemon] }]
}
