import { tempDirOf } from './pid-file.ts'
import { type FoundServer, listServers } from './servers.ts'
import { askStatus, type ToldStatus } from './status-socket.ts'

/** A server of this user, as far as it tells of itself. */
export interface ShownServer extends Partial<ToldStatus> {
  readonly pid: number
  readonly folder: string
  readonly config?: string
  /** `silent`: it starts, or its process does not answer. */
  readonly state: 'running' | 'stopping' | 'silent'
}

/** Asks every server of this user; those of the working folder come first. */
export function askServers(): Promise<ShownServer[]> {
  return Promise.all(listServers(tempDirOf(process.env)).map(shown))
}

/** `Server PID in FOLDER: ` and what it does. */
export function headOf({ pid, folder, state, started }: ShownServer): string {
  const since = started === undefined ? '' : ` since ${started}`
  const word = state === 'silent' ? 'does not answer: it is starting, or busy' : `${state}${since}`
  return `Server ${pid} in ${folder}: ${word}`
}

async function shown({ pid, folder, config, socket, stopping }: FoundServer): Promise<ShownServer> {
  const told = socket === undefined ? undefined : await askStatus(socket)
  const state = stopping === true ? 'stopping' : told === undefined ? 'silent' : 'running'
  return { pid, folder, ...(config !== undefined && { config }), state, ...told }
}
