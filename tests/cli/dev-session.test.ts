import { getEventListeners } from 'node:events'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from '@jest/globals'
import { Session } from '../../frontend/cli/dev/session.ts'
import type { Model } from '../../frontend/models/model.ts'
import type { RunningServer } from '../../frontend/server-api.ts'
import { tempDir } from '../support/temp.ts'

/** A server whose models load at once. @param onLoad says what a handler imports */
function fakeServer(onLoad: (folder: string) => string[]): RunningServer {
  const replace = ({ url }: { url: string }): Promise<Model> => {
    const sources = [join(url, 'handler.mjs'), ...onLoad(url)]
    return Promise.resolve({ name: 'model', methods: [], prepared: { sources } } as unknown as Model)
  }
  const none = (): Promise<void> => Promise.resolve()
  const models = { replace, retire: none }
  return { listening: [], models } as unknown as RunningServer
}

test('what a model imports is watched also if it has loaded before all folders were looked at', async () => {
  const root = tempDir()
  const word = join(root, 'shared', 'word.mjs')
  const [first, last] = [join(root, 'handlers', 'a'), join(root, 'handlers', 'z')]
  for (const folder of [join(root, 'shared'), first, join(last, 'b'), join(last, 'c')])
    mkdirSync(folder, { recursive: true })
  for (const file of [word, join(first, 'handler.mjs'), join(last, 'handler.mjs')]) writeFileSync(file, '')
  // They are looked at one after the other, long after `first` has loaded.
  for (const part of ['b', 'c']) for (let i = 0; i < 900; i++) writeFileSync(join(last, part, `${i}.bin`), '')

  const loads: string[] = []
  const stop = new AbortController()
  let run = Promise.resolve()
  await new Promise<void>((resolve) => {
    const server = fakeServer((folder) => {
      loads.push(folder)
      if (loads.length === 3) resolve()
      return folder === first ? [word] : []
    })
    const out = (line: string): void => {
      if (line.startsWith('Watching')) writeFileSync(word, 'changed')
    }
    run = new Session(join(root, 'handlers'), server, { out, err: out }).run(stop.signal)
  })
  stop.abort()
  await run
  expect(loads).toEqual([first, last, first])
})

test('each look at the files leaves nothing behind', async () => {
  const root = tempDir()
  mkdirSync(join(root, 'a'))
  writeFileSync(join(root, 'a', 'handler.mjs'), '')
  const stop = new AbortController()
  const listeners = new Set<number>()
  let run = Promise.resolve()
  await new Promise<void>((resolve) => {
    // A save is seen by two looks, so ten loads are many looks.
    let loads = 0
    const server = fakeServer((folder) => {
      listeners.add(getEventListeners(stop.signal, 'abort').length)
      if (++loads === 10) resolve()
      else writeFileSync(join(folder, 'handler.mjs'), 'x'.repeat(loads))
      return []
    })
    const ignore = (): void => undefined
    run = new Session(root, server, { out: ignore, err: ignore }).run(stop.signal)
  })
  stop.abort()
  await run
  expect(Math.max(...listeners)).toBeLessThanOrEqual(2)
})
