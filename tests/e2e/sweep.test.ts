import { existsSync, mkdirSync, readdirSync, utimesSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from '@jest/globals'
import { startServer, type Server } from '../support/server.ts'
import { tempDir } from '../support/temp.ts'

const ECHO = join(import.meta.dirname, '..', '..', 'model-store', 'echo')

function unpacked(server: Server): string[] {
  return readdirSync(join(server.folder, 'tmp', 'models'))
}

/** The folder of the workers' sockets, and that of `torchserve-ts status`. */
function sockets(server: Server): string[] {
  return readdirSync(join(server.folder, 'tmp')).filter((name) => name.startsWith('ts-'))
}

test('what a killed server left is removed at the next start, and nothing of one that runs', async () => {
  const killed = await startServer({ models: [`echo=${ECHO}`] })
  const left = [...unpacked(killed), ...sockets(killed)]
  expect(left).toHaveLength(3)
  await killed.stop('SIGKILL')
  expect([...unpacked(killed), ...sockets(killed)]).toEqual(left)

  const running = await startServer({ models: [`echo=${ECHO}`], folder: killed.folder })
  const own = [...unpacked(running), ...sockets(running)]
  expect(own).toHaveLength(3)
  expect(own.filter((name) => left.includes(name))).toEqual([])

  // This process sweeps the same folder, as another server would.
  const models = join(running.folder, 'tmp', 'models')
  const foreign = join(models, '0'.repeat(32))
  mkdirSync(foreign)
  writeFileSync(join(foreign, 'owner'), 'another machine\n1\n1\n')
  const unclaimed = join(models, '1'.repeat(32))
  mkdirSync(unclaimed)
  const { sweepWorkspaces } = await import('../../model-archiver/workspace.ts')
  await sweepWorkspaces(join(running.folder, 'tmp'))
  expect(unpacked(running).sort()).toEqual(['0'.repeat(32), '1'.repeat(32), own[0]].sort())
  await running.ready('echo')
  await running.stop()
})

test('of downloads only those that stand still are removed', async () => {
  const modelStore = tempDir()
  const [old, fresh] = ['a', 'b'].map((letter) => join(modelStore, `.download-${letter.repeat(16)}.part`))
  for (const path of [old!, fresh!]) writeFileSync(path, '')
  const hourAgo = Date.now() / 1000 - 3600
  utimesSync(old!, hourAgo, hourAgo)
  const server = await startServer({ modelStore })
  expect(existsSync(old!)).toBe(false)
  expect(existsSync(fresh!)).toBe(true)
  await server.stop()
})
