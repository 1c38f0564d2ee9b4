import { expect, test } from '@jest/globals'
import { rawRequest } from '../support/raw-http.ts'
import { startServer, type Server } from '../support/server.ts'
import { tempDir } from '../support/temp.ts'
import { writeVersion } from '../support/versions.ts'
import { blocksOf } from './blocks.ts'
import { Shell } from './shell.ts'

interface Weights {
  modelName: string
  defaultVersion: string
  weights: Record<string, number>
  versions: { modelVersion: string; requests: number }[]
}

async function weightsOf(server: Server): Promise<Weights> {
  return (await server.manage('GET', '/models/story/traffic')).json as unknown as Weights
}

test('docs/canary.md: its commands try a version and make it the default', async () => {
  const store = tempDir()
  writeVersion(store, 'story-1', '1.0')
  writeVersion(store, 'story-2', '2.0')
  const server = await startServer({ modelStore: store, models: ['story=story-1'] })
  await server.ready('story')
  const shell = new Shell()
  const commands = blocksOf('docs/canary.md').filter(({ language }) => language === 'sh')
  const run = (index: number): Promise<string> =>
    shell.run(commands[index]!.code.replaceAll(':8081/', `:${server.ports.management}/`))
  expect(commands).toHaveLength(4)

  await run(0)
  expect((await server.describe('story', '/all')).map(({ modelVersion }) => modelVersion)).toEqual([
    '1.0',
    '2.0',
  ])
  await run(1)
  for (let index = 0; index < 10; index += 1) await rawRequest(server.ports.inference, '/predictions/story')
  expect((await weightsOf(server)).versions.map(({ requests }) => requests)).toEqual([9, 1])
  const shown = await run(2)
  const example = blocksOf('docs/canary.md').find(({ language }) => language === 'json')!
  const { versions, ...head } = JSON.parse(example.code) as Weights
  const told = await weightsOf(server)
  expect(told).toMatchObject(head)
  expect(told.versions.map((version) => Object.keys(version))).toEqual(
    versions.map((version) => Object.keys(version)),
  )
  expect(shown).toContain('"defaultVersion": "1.0"')

  await run(3)
  expect(await weightsOf(server)).toEqual({
    modelName: 'story',
    defaultVersion: '2.0',
    weights: {},
    versions: [],
  })
  expect(await server.describe('story', '/all')).toHaveLength(1)
  await server.stop()
})
