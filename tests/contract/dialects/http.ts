import { request, type IncomingMessage } from 'node:http'
import type { Dialect, End, StreamOptions, Streamed } from '../dialect.ts'

/** How a dialect over HTTP asks, and reads what comes. */
export interface HttpForm {
  readonly name: string
  path(model: string): string
  body(model: string, input: string): unknown
  /** Takes a piece of the body; gives the items that are complete now. Throws what the stream itself says is an error. */
  reader(): (piece: string) => string[]
}

const LIMIT_MS = 30_000

export class HttpDialect implements Dialect {
  readonly name: string
  readonly http = true
  readonly notFound = '404'
  readonly #url: string
  readonly #form: HttpForm

  constructor(url: string, form: HttpForm) {
    this.#url = url
    this.#form = form
    this.name = form.name
  }

  stream(model: string, input: string, options: StreamOptions = {}): Promise<Streamed> {
    return new Promise((resolve, reject) => {
      const body = JSON.stringify(this.#form.body(model, input))
      const headers = {
        'content-type': 'application/json',
        'content-length': Buffer.byteLength(body),
        'accept-encoding': 'gzip',
      }
      const url = this.#url + this.#form.path(model)
      const asked = request(url, { method: 'POST', headers, agent: false, timeout: LIMIT_MS })
      asked.on('timeout', () => asked.destroy(new Error(`nothing for ${LIMIT_MS} ms`)))
      asked.on('error', reject)
      asked.on('response', (answer) => {
        if (answer.statusCode === 200) resolve(this.#read(answer, options))
        else resolve(refused(answer))
      })
      asked.end(body)
    })
  }

  close(): void {
    // Every stream has a connection of its own, which ends with it.
  }

  #read(answer: IncomingMessage, { leaveAfter, stallMs }: StreamOptions): Promise<Streamed> {
    const items: { text: string; at: number }[] = []
    const take = this.#form.reader()
    const headers = answer.headers as Record<string, string>
    return new Promise((resolve) => {
      const finish = (end: End, leftAt?: number): void => {
        resolve({ items, end, headers, leftAt })
        if (end.kind !== 'finished') answer.destroy()
      }
      const leave = (): void => finish({ kind: 'left' }, performance.now())
      answer.on('error', (error) => finish({ kind: 'failed', message: error.message }))
      answer.on('end', () => finish({ kind: 'finished' }))
      if (stallMs !== undefined) {
        setTimeout(leave, stallMs)
        return
      }
      answer.setEncoding('utf8')
      answer.on('data', (piece: string) => {
        try {
          for (const text of take(piece)) {
            items.push({ text, at: performance.now() })
            if (items.length === leaveAfter) leave()
          }
        } catch (error) {
          finish({ kind: 'failed', message: (error as Error).message })
        }
      })
    })
  }
}

async function refused(answer: IncomingMessage): Promise<Streamed> {
  let message = ''
  for await (const piece of answer.setEncoding('utf8')) message += String(piece)
  return { items: [], end: { kind: 'refused', status: String(answer.statusCode), message } }
}

/** Items of a stream of events: `data:` lines, with `textOf` what an event says. Throws the error that an event says. */
export function eventReader(textOf: (event: Record<string, unknown>) => string | undefined) {
  return (): ((piece: string) => string[]) => {
    let rest = ''
    return (piece) => {
      const events = (rest + piece).split('\n\n')
      rest = events.pop()!
      return events.flatMap((event) => {
        if (!event.startsWith('data: ') || event === 'data: [DONE]') return []
        const value = JSON.parse(event.slice(6)) as Record<string, unknown>
        if (value['error'] !== undefined) throw new Error(JSON.stringify(value['error']))
        return textOf(value) ?? []
      })
    }
  }
}
