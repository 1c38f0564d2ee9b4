import type { Readable } from 'node:stream'
import { StringDecoder } from 'node:string_decoder'
import { ReadPace } from '../../common/read-pace.ts'

/** Maximum characters per line; longer lines are split. */
const MAX_LINE = 8192

/** Milliseconds after which a line without an end counts as one: its process may wait, or work on. */
const QUIET_MS = 1_000

/** Of all processes together. What becomes of their lines in the log takes longer than to read them. */
export const TURN_BYTES = 65_536
const pace = new ReadPace(TURN_BYTES)

/**
 * Calls back for each line of a process's output, with bounded memory. What has no newline follows when the
 * process has written nothing for a second.
 */
export function readLines(stream: Readable, onLine: (line: string) => void): void {
  const decoder = new StringDecoder('utf8')
  let rest = ''
  let timer: NodeJS.Timeout | undefined
  /** The last line was given without its end. */
  let early = false
  const flush = (): void => {
    if (rest !== '') onLine(rest)
    early = rest !== ''
    rest = ''
  }
  stream.on('data', (chunk: Buffer) => {
    pace.read(stream, chunk.byteLength)
    clearTimeout(timer)
    const lines = (rest + decoder.write(chunk)).split('\n')
    rest = lines.pop() ?? ''
    if (early && (lines[0] === '' || lines[0] === '\r')) lines.shift()
    early = false
    for (const line of lines) onLine(line.endsWith('\r') ? line.slice(0, -1) : line)
    while (rest.length > MAX_LINE) {
      onLine(rest.slice(0, MAX_LINE))
      rest = rest.slice(MAX_LINE)
    }
    if (rest !== '') timer = setTimeout(flush, QUIET_MS).unref()
  })
  stream.on('end', () => {
    clearTimeout(timer)
    flush()
  })
  stream.on('error', () => undefined)
}
