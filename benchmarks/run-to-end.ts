import { stopAll } from './processes.ts'
import { removeScratch } from './scratch.ts'

let finishing = false

/** Runs a program and exits with the status that it returns, or 1 after an error. Leaves nothing behind. */
export async function runToEnd(program: () => Promise<number>): Promise<void> {
  // `on`, not `once`: execa's own listener exits the process when it is the only one.
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => void finish(130))
  try {
    await finish(await program())
  } catch (error) {
    if (!finishing) process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`)
    await finish(1)
  }
}

/** Runs only once: stopping the servers fails the running measurement, which calls it again. */
async function finish(status: number): Promise<void> {
  if (finishing) return
  finishing = true
  await stopAll()
  removeScratch()
  process.exit(status)
}
