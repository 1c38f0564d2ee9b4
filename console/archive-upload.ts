import type { Api } from './api.ts'
import { reasonOf } from './api.ts'

/** How far an upload is. */
export interface UploadProgress {
  readonly name: string
  readonly sent: number
  readonly total: number
}

/** Takes archives to the model store, one at a time. */
export class ArchiveUpload {
  /** Undefined: nothing is being sent. */
  progress: UploadProgress | undefined
  /** What became of the last one; undefined: there was none, or the next one runs. */
  outcome: { readonly ok: boolean; readonly text: string } | undefined
  /** The archive that was uploaded last; empty: none. */
  uploaded = ''
  readonly #api: Api
  readonly #changed: () => void
  #stop = new AbortController()

  constructor(api: Api, changed: () => void) {
    this.#api = api
    this.#changed = changed
  }

  /** Does nothing while another one runs. */
  async send(file: File): Promise<void> {
    if (this.progress !== undefined) return
    const { name, size } = file
    const show = (sent: number): void => {
      this.progress = { name, sent, total: size }
      this.#changed()
    }
    this.outcome = undefined
    this.#stop = new AbortController()
    show(0)
    try {
      await this.#api.upload(`/archives/${encodeURIComponent(name)}`, file, this.#stop.signal, show)
      this.outcome = { ok: true, text: `${name} is in the model store.` }
      if (!name.endsWith('.sig')) this.uploaded = name
    } catch (error) {
      this.outcome = { ok: false, text: `Upload ${name}: ${reasonOf(error)}` }
    }
    this.progress = undefined
    this.#changed()
  }

  stop(): void {
    this.#stop.abort()
  }
}
