import { expect } from '@jest/globals'
import { modelFolder } from './model-folder.ts'
import type { Server } from './server.ts'

/** A handler with `handle`, one with methods of V2 and OpenAI, and one that only answers chats. */
export const PACED = ['paced', 'native', 'chat']

/** A model of each of these; their names have this ending. */
export function pacedModels(config: Record<string, unknown>, ending = ''): string[] {
  return [
    modelFolder(`paced${ending}`, 'paced', config),
    modelFolder(`native${ending}`, 'paced-native', config),
    modelFolder(`chat${ending}`, 'paced-chat', config),
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

/** A run that never began. */
export function expectUnbegun(server: Server, id: string): void {
  expect(server.output.filter((line) => line.includes(`paced began ${id}`))).toEqual([])
}
