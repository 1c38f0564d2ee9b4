import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from '@jest/globals'
import { ECHO } from '../support/count.ts'
import { rawRequest } from '../support/raw-http.ts'
import { REPOSITORY, startServer } from '../support/server.ts'
import { tempDir } from '../support/temp.ts'

const PROBE = join(REPOSITORY, 'tests/support/tick-shapes.mjs')

/** The shapes of the objects that `%DebugPrint` has shown. */
function shapes(text: string): string[] {
  return [...text.matchAll(/- map: (0x[0-9a-f]+) .*\[FastProperties\]/g)].map(([, shape]) => shape!)
}

test('a server at rest keeps the shape of the objects of ticks, which makes them fast', async () => {
  const server = await startServer({ models: [ECHO], nodeArgs: ['--import', PROBE] })
  await server.ready('echo')
  process.kill(server.pid, 'SIGUSR2')
  const [before, after] = await server.until(
    () => Promise.resolve(shapes(server.output.join('\n'))),
    ({ length }) => length === 2,
  )
  expect(after).toBe(before)
})

test('so does a worker', async () => {
  const folder = join(tempDir(), 'shapes')
  mkdirSync(folder)
  writeFileSync(
    join(folder, 'handler.mjs'),
    `export async function handle(requests) {
       const { showShapes } = await import(${JSON.stringify(PROBE)})
       await showShapes()
       return requests.map(() => 'shown')
     }`,
  )
  const server = await startServer({ models: [`shapes=${folder}`] })
  await server.ready('shapes')
  const { body } = await rawRequest(server.ports.inference, '/predictions/shapes', { body: 'x' })
  expect(body).toBe('shown')
  const log = join(server.folder, 'logs', 'model_log.log')
  const [before, after] = await server.until(
    () => Promise.resolve(shapes(readFileSync(log, 'utf8'))),
    ({ length }) => length === 2,
  )
  expect(after).toBe(before)
})
