import { createServer } from 'node:net'
import { copyFileSync, mkdirSync, readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect } from '@jest/globals'
import { stringify } from 'yaml'
import { findSandbox } from '../../../frontend/workers/sandbox/support.ts'
import { answerOf } from '../../support/python/client.ts'
import type { Server, ServerOptions } from '../../support/server.ts'
import { tempDir } from '../../support/temp.ts'
import type { Attack } from './handler.ts'

export const MODES = ['off', 'default', 'strict'] as const
export type Mode = (typeof MODES)[number]

/** Why the matrix cannot hold here; undefined: it can. */
export async function whyNot(): Promise<string | undefined> {
  const { missing } = await findSandbox()
  return missing === undefined ? undefined : `this system lacks ${missing}`
}

/** The model-config.yaml of a model in this mode. */
export function inMode(mode: Mode, more: Record<string, unknown> = {}): Record<string, unknown> {
  return { minWorkers: 1, maxWorkers: 1, sandbox: { mode, ...more } }
}

/** A folder with what a handler must not see, and a server's options for it. */
export function plantedServer(): Required<Pick<ServerOptions, 'folder' | 'env' | 'config'>> {
  const folder = tempDir()
  writeFileSync(join(folder, 'key_file.json'), '{"management":{"key":"planted"}}')
  mkdirSync(join(folder, 'neighbour'))
  writeFileSync(join(folder, 'neighbour', 'weights'), 'planted')
  return { folder, env: { PLANTED_SECRET: 'planted' }, config: { sandbox_by_model: true } }
}

/** A Unix socket that is nobody's business. */
export async function foreignSocket(folder: string): Promise<{ path: string; close: () => void }> {
  const path = join(folder, 'foreign')
  const server = createServer((socket) => socket.destroy())
  await new Promise<void>((resolve) => server.listen(path, resolve))
  return { path, close: () => void server.close() }
}

/** The attacks, and the modes that stop them. */
export function attacksOn(
  server: Server,
  socket: string,
): [name: string, attack: Attack, stoppedBy: Mode[]][] {
  const { folder, pid } = server
  const sockets = join(
    folder,
    'tmp',
    readdirSync(join(folder, 'tmp')).find((name) => name.startsWith('ts-'))!,
  )
  const keyFile = join(folder, 'key_file.json')
  const port = server.ports.management
  const both: Mode[] = ['default', 'strict']
  return [
    ['the server’s environment, inherited', { attack: 'environment' }, both],
    ['the client’s Authorization header', { attack: 'header' }, both],
    ['the key file', { attack: 'read', path: keyFile }, both],
    ['the configuration', { attack: 'read', path: join(folder, 'config.properties') }, both],
    ['the server’s environment, from /proc', { attack: 'read', path: `/proc/${pid}/environ` }, both],
    ['the server’s working directory, from /proc', { attack: 'list', path: `/proc/${pid}/cwd/` }, both],
    ['the server’s memory, from /proc', { attack: 'memory', pid }, both],
    ['tracing the server', { attack: 'trace', pid }, both],
    ['a signal to the server', { attack: 'signal', pid }, both],
    ['the limits of the server’s process', { attack: 'limits', pid }, both],
    ['the mode of the key file', { attack: 'mode', path: keyFile, count: 0o600 }, ['strict']],
    ['a key file that others write', { attack: 'mode', path: keyFile, count: 0o602 }, both],
    ['a folder that others write', { attack: 'mode', path: join(folder, 'neighbour'), count: 0o777 }, both],
    ['a program with the server’s rights', { attack: 'mode', path: keyFile, count: 0o4700 }, both],
    ['the server’s log', { attack: 'read', path: join(folder, 'logs', 'ts_log.log') }, both],
    ['the files of another model', { attack: 'read', path: join(folder, 'neighbour', 'weights') }, both],
    ['the names of other workers’ sockets', { attack: 'list', path: sockets }, both],
    ['the folder of unpacked models', { attack: 'list', path: join(folder, 'tmp', 'models') }, both],
    ['writing elsewhere', { attack: 'write', path: join(folder, 'written') }, both],
    ['a connection to the management port', { attack: 'tcp', port }, ['strict']],
    ['a datagram', { attack: 'udp', port }, ['strict']],
    ['a Unix socket whose path is known', { attack: 'unix', path: socket }, ['strict']],
  ]
}

/** Tries every attack in every mode, and compares what was stopped with what should be. */
export async function expectMatrix(
  attacks: ReturnType<typeof attacksOn>,
  server: Server,
  modelOf: (mode: Mode) => string,
): Promise<void> {
  const seen = new Map<string, string[]>()
  for (const [name, attack] of attacks) {
    const stoppedBy: string[] = []
    for (const mode of MODES) {
      const answer = await answerOf(server, modelOf(mode), attack, { Authorization: 'Bearer planted' })
      expect(Object.keys(answer)).toEqual([expect.stringMatching(/^(got|stopped)$/)])
      if ('stopped' in answer) stoppedBy.push(mode)
    }
    seen.set(name, stoppedBy)
  }
  expect([...seen]).toEqual(attacks.map(([name, , stoppedBy]) => [name, stoppedBy]))
}

/** A model with the hostile handler: `name=folder`. */
export function hostile(name: string, config: Record<string, unknown>): string {
  const folder = join(tempDir(), name)
  mkdirSync(folder)
  copyFileSync(join(import.meta.dirname, 'handler.ts'), join(folder, 'handler.ts'))
  writeFileSync(join(folder, 'model-config.yaml'), stringify(config))
  return `${name}=${folder}`
}
