import type { Readable } from 'node:stream'
import { StringDecoder } from 'node:string_decoder'

/** Maximum characters per line; longer lines are split. */
const MAX_LINE = 8192

/** Milliseconds after which a line without an end counts as one: its process may wait, or work on. */
const QUIET_MS = 1_000

/**
 * Bytes that all processes together may have read in a turn of the event loop, by which the last chunk may
 * exceed it. Node would read two megabytes of each, and what becomes of them in the log takes longer.
 */
export const TURN_BYTES = 65_536
let bytesOfTurn = 0
const paused: Readable[] = []

function pace(stream: Readable, bytes: number): void {
  if (bytesOfTurn === 0) setImmediate(beginTurn)
  bytesOfTurn += bytes
  if (bytesOfTurn < TURN_BYTES) return
  stream.pause()
  paused.push(stream)
}

function beginTurn(): void {
  bytesOfTurn = 0
  for (const stream of paused.splice(0)) stream.resume()
}

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
    pace(stream, chunk.byteLength)
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
