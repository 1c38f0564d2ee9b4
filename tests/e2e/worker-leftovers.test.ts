import { existsSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from '@jest/globals'
import { Faults } from '../support/faults.ts'
import { Gate } from '../support/gate.ts'
import { modelFolder } from '../support/model-folder.ts'
import { rawRequest } from '../support/raw-http.ts'
import { type Server, startServer } from '../support/server.ts'
import { tempDir } from '../support/temp.ts'

/** A PATH on which this program comes first as `rm`. */
function pathWithRm(script: string): string {
  const folder = tempDir()
  writeFileSync(join(folder, 'rm'), `#!/bin/sh\n${script}\n`, { mode: 0o755 })
  return `${folder}:${process.env['PATH']}`
}

/** Has the worker of `leaver` fill its folder, and ends it. @returns the folder */
async function leave(server: Server, files: number, depth: number): Promise<string> {
  await server.ready('leaver')
  const body = JSON.stringify({ files, depth })
  const headers = { 'content-type': 'application/json' }
  const answer = await rawRequest(server.ports.inference, '/predictions/leaver', { body, headers })
  expect(answer.status).toBe(200)
  process.kill((await server.worker('leaver')).pid, 'SIGKILL')
  return answer.body
}

const ping = async (server: Server): Promise<number> =>
  (await rawRequest(server.ports.inference, '/ping', { method: 'GET' })).status

test('the server answers while a program removes what a worker left, however much and deep', async () => {
  const [begun, gate] = [join(tempDir(), 'begun'), new Gate()]
  const wait = `echo > ${begun}; while [ ! -e ${gate.path} ]; do sleep 0.01; done`
  const PATH = pathWithRm(`${wait}; PATH='${process.env['PATH']}' exec rm "$@"`)
  const server = await startServer({ models: [modelFolder('leaver', 'leaver', {})], env: { PATH } })
  const folder = await leave(server, 20_000, 40)
  await server.until(async () => existsSync(begun), Boolean)
  await server.ready('leaver')
  expect([await ping(server), existsSync(folder)]).toEqual([200, true])
  gate.open()
  const gone = async (): Promise<boolean> => (await ping(server)) === 200 && !existsSync(folder)
  await server.until(gone, Boolean, 60_000)
  expect(server.output.filter((line) => line.includes('left behind'))).toEqual([])
  await server.stop()
})

test('what cannot be removed of a worker is said in one line', async () => {
  const faults = new Faults()
  const env = { ...faults.options.env, PATH: pathWithRm('exit 1') }
  const models = [modelFolder('leaver', 'leaver', {})]
  const server = await startServer({ models, env })
  faults.make({ call: 'unlink', code: 'EROFS', text: '/ts-' })
  const folder = await leave(server, 3, 0)
  const [line, ...more] = await server.lines('left behind')
  expect(line).toContain(`[WARN ] main torchserve - ${folder} is left behind: EROFS: `)
  expect(more).toEqual([])
  faults.heal()
  await server.stop()
  expect(existsSync(folder)).toBe(false)
})
