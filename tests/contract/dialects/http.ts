import { request, type IncomingMessage } from 'node:http'
import type { Asked, AskOptions, Dialect, End } from '../dialect.ts'

/** How a dialect over HTTP asks, and reads what comes. */
export interface HttpForm {
  readonly name: string
  readonly whole?: true
  path(model: string): string
  body(model: string, input: string): unknown
  /**
   * Takes a piece of the body and returns the complete items. Throws an error that the response itself
   * contains.
   */
  reader(): (piece: string) => string[]
}

const LIMIT_MS = 30_000
export const HTTP_NOT_FOUND = '404'

export class HttpDialect implements Dialect {
  readonly name: string
  readonly whole: boolean
  readonly http = true
  readonly notFound = HTTP_NOT_FOUND
  readonly #url: string
  readonly #form: HttpForm

  constructor(url: string, form: HttpForm) {
    this.#url = url
    this.#form = form
    this.name = form.name
    this.whole = form.whole === true
  }

  ask(model: string, input: string, options: AskOptions = {}): Promise<Asked> {
    return new Promise((resolve, reject) => {
      const body = JSON.stringify(this.#form.body(model, input))
      const headers = {
        'content-type': 'application/json',
        'content-length': Buffer.byteLength(body),
        'accept-encoding': this.whole ? 'identity' : 'gzip',
        ...options.headers,
      }
      const url = this.#url + this.#form.path(model)
      const asked = request(url, { method: 'POST', headers, agent: false, timeout: LIMIT_MS })
      const leaves = leaving(options)
      leaves.addEventListener('abort', () => {
        resolve({ items: [], end: { kind: 'left' }, leftAt: performance.now() })
        asked.destroy()
      })
      asked.on('timeout', () => asked.destroy(new Error(`nothing for ${LIMIT_MS} ms`)))
      asked.on('error', reject)
      asked.on('response', (answer) => {
        if (answer.statusCode === 200) resolve(this.#read(answer, options, leaves))
        else refused(answer).then(resolve, reject)
      })
      asked.end(body)
    })
  }

  close(): void {
    // Every request has a connection of its own, which ends with it.
  }

  #read(answer: IncomingMessage, options: AskOptions, leaves: AbortSignal): Promise<Asked> {
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
      leaves.addEventListener('abort', leave)
      if (options.stallUntil !== undefined) return
      answer.setEncoding('utf8')
      answer.on('data', (piece: string) => {
        try {
          for (const text of take(piece)) {
            items.push({ text, at: performance.now() })
            options.onItem?.(items.length)
            if (items.length === options.leaveAfter) leave()
          }
        } catch (error) {
          finish({ kind: 'failed', message: (error as Error).message })
        }
        if (options.pause !== undefined) void paused(answer, options.pause)
      })
    })
  }
}

async function paused(answer: IncomingMessage, pause: () => Promise<void>): Promise<void> {
  answer.pause()
  await pause()
  answer.resume()
}

/** Aborts when the client is to leave, whatever came. */
function leaving({ leaveAfterMs, stallUntil }: AskOptions): AbortSignal {
  if (leaveAfterMs === undefined) return stallUntil ?? new AbortController().signal
  return AbortSignal.timeout(leaveAfterMs)
}

async function refused(answer: IncomingMessage): Promise<Asked> {
  let message = ''
  for await (const piece of answer.setEncoding('utf8')) message += String(piece)
  return { items: [], end: { kind: 'refused', status: String(answer.statusCode), message } }
}
