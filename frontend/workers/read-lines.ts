import type { Readable } from 'node:stream'
import { StringDecoder } from 'node:string_decoder'

/** Maximum characters per line; longer lines are split. */
const MAX_LINE = 8192

/** Calls back for each line of a process's output, with bounded memory. */
export function readLines(stream: Readable, onLine: (line: string) => void): void {
  const decoder = new StringDecoder('utf8')
  let rest = ''
  stream.on('data', (chunk: Buffer) => {
    const lines = (rest + decoder.write(chunk)).split('\n')
    rest = lines.pop() ?? ''
    for (const line of lines) onLine(line.endsWith('\r') ? line.slice(0, -1) : line)
    while (rest.length > MAX_LINE) {
      onLine(rest.slice(0, MAX_LINE))
      rest = rest.slice(MAX_LINE)
    }
  })
  stream.on('end', () => {
    if (rest !== '') onLine(rest)
  })
  stream.on('error', () => undefined)
}
