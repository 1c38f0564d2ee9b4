import { existsSync, realpathSync } from 'node:fs'
import { basename } from 'node:path'
import type { Model } from '../models/model.ts'

/** A line of a stack: of V8 (`at handle (file:///...`), or of Python (`File "/...", line 3`). */
const FRAME = /^\s*(at\s|File ")/

/**
 * Names the files of an archive in stack traces as its author knows them, `words.mar/handler.ts:3:9`, where a
 * process sees the temporary folder that it was unpacked into. Other lines, and models that are folders of
 * their own, stay as they are.
 */
export function archiveFrames({ url, prepared }: Pick<Model, 'url' | 'prepared'>): (text: string) => string {
  if (prepared.archive === undefined) return (text) => text
  const shown = `${basename(url.replace(/[?#].*$/, ''))}/`
  const { modelDir } = prepared
  // Node tells of a module by the path that links lead to.
  const folders = [...new Set([modelDir, existsSync(modelDir) ? realpathSync(modelDir) : modelDir])]
  const places = folders.flatMap((folder) => [`file://${folder}/`, `${folder}/`])
  const inFrame = (line: string): string =>
    FRAME.test(line) ? places.reduce((told, place) => told.replaceAll(place, () => shown), line) : line
  return (text) =>
    folders.some((folder) => text.includes(folder)) ? text.split('\n').map(inFrame).join('\n') : text
}
