import { Session } from 'node:inspector'
import { REPOSITORY } from '../support/server-process.ts'
import { pathToFileURL } from 'node:url'

/** Which blocks of this project's code have run, as V8 counts them. */
export class Coverage {
  readonly #session = new Session()
  readonly #seen = new Set<string>()
  readonly #root = pathToFileURL(`${REPOSITORY}/`).href

  constructor() {
    this.#session.connect()
    this.#session.post('Profiler.enable')
    this.#session.post('Profiler.startPreciseCoverage', { callCount: true, detailed: true })
  }

  get blocks(): number {
    return this.#seen.size
  }

  /** The blocks that ran since the last call and never before. */
  take(): Set<string> {
    const fresh = new Set<string>()
    for (const block of this.#ran()) if (!this.#seen.has(block)) fresh.add(block)
    for (const block of fresh) this.#seen.add(block)
    return fresh
  }

  /** Whether any of these ran since the last call. */
  reaches(blocks: ReadonlySet<string>): boolean {
    return this.#ran().some((block) => blocks.has(block))
  }

  #ran(): string[] {
    const ran: string[] = []
    this.#session.post('Profiler.takePreciseCoverage', (error, answer) => {
      if (error !== null) throw error
      for (const { url, functions } of answer.result) {
        if (!url.startsWith(this.#root) || url.includes('/tests/') || url.includes('/node_modules/')) continue
        for (const { ranges } of functions)
          for (const { startOffset, endOffset, count } of ranges)
            if (count > 0) ran.push(`${url}:${startOffset}-${endOffset}`)
      }
    })
    return ran
  }
}
