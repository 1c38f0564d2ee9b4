import type { Readable } from 'node:stream'
import { StringDecoder } from 'node:string_decoder'
import { ReadPace } from '../../common/byte-flow.ts'

/** Colours for terminals, which some libraries print to every output. */
const COLOURS = /\u001b\[[\d;]*m/g

/** Maximum characters per line; longer lines are split. */
const MAX_LINE = 8192

/** Milliseconds after which a line without an end counts as one: its process may wait, or work on. */
const QUIET_MS = 1_000

/**
 * What all processes together report in a turn of the event loop: lines, and frames of logs and metrics. What
 * becomes of them takes longer than to read them.
 */
export const TURN_BYTES = 65_536
/** Lines of one process in a turn, or frames of all. Short ones are as much work as others. */
export const TURN_LINES = 256
const LINE_BYTES = TURN_BYTES / TURN_LINES
const NEWLINE = 10
const pace = new ReadPace(TURN_BYTES)

/** Counts logs and values of metrics that came from a worker's socket like lines that it prints. */
export function paceReports(socket: Readable, bytes: number, reports: number): void {
  pace.read(socket, bytes + reports * LINE_BYTES)
}

/**
 * Calls back for each line of a process's output, without colours, with bounded memory. What has no newline
 * follows when the process has written nothing for a second.
 */
export function readLines(stream: Readable, take: (line: string) => void): void {
  const onLine = (line: string): void => take(line.includes('\u001b') ? line.replace(COLOURS, '') : line)
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
    const { bytes, lines: count } = linesOf(chunk)
    pace.read(stream, bytes + count * LINE_BYTES)
    // It is paused now, and comes again.
    if (bytes < chunk.length) stream.unshift(chunk.subarray(bytes))
    clearTimeout(timer)
    const lines = (rest + decoder.write(chunk.subarray(0, bytes))).split('\n')
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

/** The lines of a turn, and their bytes: all of the chunk, if it has no more lines. */
function linesOf(chunk: Buffer): { bytes: number; lines: number } {
  let bytes = 0
  for (let lines = 0; lines < TURN_LINES; lines += 1) {
    const at = chunk.indexOf(NEWLINE, bytes)
    if (at === -1) return { bytes: chunk.length, lines }
    bytes = at + 1
  }
  return { bytes, lines: TURN_LINES }
}
