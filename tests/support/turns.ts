import { join } from 'node:path'
import type { Server } from './server.ts'

/** Flags of Node for a server whose turns are measured. */
export const TURN_PROBE = ['--import', join(import.meta.dirname, 'turn-probe.mjs')]

/** Milliseconds of processor time that the main thread spent in one go since the last call. */
export async function longestTurn(server: Server): Promise<number> {
  const seen = server.output.length
  server.process.kill('SIGUSR2')
  const found = await server.until(
    () => Promise.resolve(server.output.slice(seen).find((line) => line.startsWith('turn-probe'))),
    (line) => line !== undefined,
  )
  return Number(found!.slice('turn-probe '.length))
}
