import { expect } from '@jest/globals'
import { modelFolder } from './model-folder.ts'
import type { Server } from './server.ts'

/** Both kinds of handlers that pace.ts describes, with their names as rows of a test. */
export const PACED = [
  ['TorchServe’s kind', 'paced'],
  ['V2’s and OpenAI’s kind', 'native'],
] as const

/** Models of both kinds; names are `paced` and `native` with this ending. */
export function pacedModels(config: Record<string, unknown>, ending = ''): string[] {
  return [
    modelFolder(`paced${ending}`, 'paced', config),
    modelFolder(`native${ending}`, 'paced-native', config),
  ]
}

/** Waits until a run has said a word (pace.ts): when that was, in milliseconds since the epoch. */
export async function said(server: Server, word: string, id: string): Promise<number> {
  const start = `paced ${word} ${id} `
  const line = await server.until(
    () => Promise.resolve(server.output.find((each) => each.includes(start))),
    (found) => found !== undefined,
  )
  return Number(line!.slice(line!.indexOf(start) + start.length))
}

/** A run that was never begun. */
export function expectUnbegun(server: Server, id: string): void {
  expect(server.output.filter((line) => line.includes(`paced began ${id}`))).toEqual([])
}
