import { redactUrl } from '../../common/texts.ts'
import type { LoadingModel } from '../../common/server-events.ts'
import type { RegisterRequest } from './operations.ts'

/** One archive on its way to a model. */
export interface Load {
  /** Bytes of a download that have arrived, of how many if the sender said so. */
  readonly received: (bytes: number, total: number | undefined) => void
  /** The files are here. */
  readonly unpacking: () => void
  /** It has become a model, or has failed. */
  readonly end: () => void
}

interface Progress {
  readonly modelName: string | undefined
  readonly url: string
  readonly since: number
  phase: LoadingModel['phase']
  receivedBytes: number | undefined
  totalBytes: number | undefined
}

/** The archives that are being downloaded and unpacked. */
export class Loads {
  readonly #running = new Set<Progress>()

  begin({ url, modelName }: Pick<RegisterRequest, 'url' | 'modelName'>): Load {
    const progress: Progress = {
      modelName,
      url: redactUrl(url),
      since: performance.now(),
      phase: /^https?:/i.test(url) ? 'downloading' : 'unpacking',
      receivedBytes: undefined,
      totalBytes: undefined,
    }
    this.#running.add(progress)
    return {
      received: (bytes, total) => {
        progress.receivedBytes = bytes
        progress.totalBytes = total
      },
      unpacking: () => {
        progress.phase = 'unpacking'
      },
      end: () => {
        this.#running.delete(progress)
      },
    }
  }

  list(): LoadingModel[] {
    const now = performance.now()
    return [...this.#running].map(({ since, ...progress }) => ({
      ...progress,
      ageMs: Math.round(now - since),
    }))
  }
}
