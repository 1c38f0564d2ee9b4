import { basename, relative } from 'node:path'
import { isScript } from '../../../model-archiver/handler-entry.ts'
import { defaultModelName } from '../../../model-archiver/model-names.ts'
import { ServeError } from '../../../common/errors.ts'
import { startTimer } from '../../../common/timer.ts'
import type { Model } from '../../models/model.ts'
import type { ReplaceableModels } from '../../models/repository.ts'
import type { Output } from '../output.ts'
import { indented } from './dev-log.ts'
import { addStamp, changedFiles, readFolder, WATCH_LIMITS, type FileStamps } from './file-stamps.ts'

/** Seconds of a load after which its author hears that it goes on. */
const STILL_LOADING_S = [5, 30]

/** Milliseconds after which a file that is still being written is loaded. */
const UNSETTLED_MS = 1000

/** What a folder needs of its session. */
export interface FolderHost {
  readonly models: ReplaceableModels
  readonly output: Output
  /** Loaded for the first time. */
  firstLoaded(model: Model): Promise<void>
}

/** The model of one folder: compares its files, loads it again when they have changed. */
export class ServedFolder {
  readonly #folder: string
  readonly #host: FolderHost
  #stamps: FileStamps | undefined
  #model: Model | undefined
  /** What the last look at the folder itself found. */
  #read: FileStamps = new Map()
  /** What the last look found: editors save in several steps, so a change counts when it is seen twice. */
  #seen: FileStamps = new Map()
  #unsettledSince: number | undefined
  #isMissing = false
  #toldUnread = false
  /** Files of the handler that looks at the folder do not find. */
  #outside: readonly string[] = []
  /** Scripts that the loaded handler consists of; undefined: it did not load, so any may be one. */
  #sources: ReadonlySet<string> | undefined
  #calledOff = new AbortController()
  #last: Promise<void> = Promise.resolve()

  constructor(folder: string, host: FolderHost) {
    this.#folder = folder
    this.#host = host
  }

  /** Resolves when nothing is being loaded. */
  get idle(): Promise<void> {
    return this.#last
  }

  /**
   * Reads the folder; the first time, and when a file has changed, loads the model. What is still loading is
   * out of date then, and called off.
   */
  async look(): Promise<void> {
    this.#isMissing = false
    const read = await readFolder(this.#folder)
    this.#tellUnread(read.unread)
    this.#read = read.stamps
    const stamps = new Map(read.stamps)
    for (const path of this.#outside) await addStamp(stamps, path)
    const before = this.#stamps
    const changed = changedFiles(before ?? new Map(), stamps).filter((path) => this.#counts(path))
    if (before !== undefined && !this.#isSettled(stamps)) return
    this.#stamps = stamps
    if (before !== undefined && changed.length === 0) return
    if (before !== undefined) this.#say(`${this.#told(changed)} changed`)
    this.#calledOff.abort()
    this.#calledOff = new AbortController()
    const { signal } = this.#calledOff
    this.#last = this.#last.then(() => (signal.aborted ? undefined : this.#load(signal)))
  }

  /** A look did not find it. @returns whether the one before did not either */
  isMissingAgain(): boolean {
    const wasMissing = this.#isMissing
    this.#isMissing = true
    return wasMissing
  }

  /** The folder is gone. */
  async remove(): Promise<void> {
    this.#calledOff.abort()
    await this.#last
    if (this.#model === undefined) return
    await this.#host.models.retire(this.#model)
    this.#say('its handler or its folder is gone, and the model with it')
  }

  /** Ends what is being loaded. */
  callOff(): void {
    this.#calledOff.abort()
  }

  async #load(signal: AbortSignal): Promise<void> {
    const start = performance.now()
    const old = this.#model
    const timers = STILL_LOADING_S.map((seconds) =>
      startTimer(() => this.#stillLoads(seconds), seconds * 1000),
    )
    try {
      const request = { url: this.#folder, synchronous: true }
      const model = await this.#host.models.replace(request, true, signal)
      this.#model = model
      await this.#useSources(model)
      const ms = Math.round(performance.now() - start)
      if (old === undefined) await this.#host.firstLoaded(model)
      else this.#say(`the new code serves, after ${ms} ms`)
    } catch (thrown) {
      if (signal.aborted) return // another load follows, or remove()
      this.#sources = undefined
      this.#tellFailure(ServeError.from(thrown))
    } finally {
      for (const timer of timers) clearTimeout(timer)
    }
  }

  #tellUnread(folder: string | undefined): void {
    if (folder === undefined || this.#toldUnread) return
    this.#toldUnread = true
    const { filesInFolder, files, folders } = WATCH_LIMITS
    const where = relative(this.#folder, folder) || 'its folder'
    this.#host.output.err(
      `${this.#name}: too many files to watch: changes in ${where}, and in what follows it, are not noticed. At most ` +
        `${files} files in ${folders} folders are watched, ${filesInFolder} in each, and all that the handler imports. ` +
        'Keep data elsewhere, or in a folder whose name begins with a dot',
    )
  }

  #stillLoads(seconds: number): void {
    const old = this.#model === undefined ? '' : '; the old code serves meanwhile'
    this.#say(
      `it still loads, after ${seconds} s: its packages, the top level of its code, or initialize${old}`,
    )
  }

  #tellFailure({ code, message, detail }: ServeError): void {
    // What a worker has said of it is told already.
    const isTold = code === 'WORKER_START_FAILED' || code === 'OUT_OF_MEMORY'
    if (!isTold) {
      this.#host.output.err(`${this.#name}: ${message}`)
      for (const line of indented(detail)) this.#host.output.err(line)
    }
    const then =
      this.#model === undefined
        ? 'the next change of its files loads it again'
        : 'the old code goes on serving'
    this.#host.output.err(`${this.#name}: it does not load; ${then}`)
  }

  async #useSources({ prepared: { sources } }: Model): Promise<void> {
    this.#sources = sources.length === 0 ? undefined : new Set(sources)
    const outside = sources.filter((path) => !this.#read.has(path))
    const stamps = new Map(this.#stamps)
    for (const path of outside) if (!stamps.has(path)) await addStamp(stamps, path)
    this.#stamps = stamps
    this.#outside = outside
  }

  #isSettled(stamps: FileStamps): boolean {
    const isSame = changedFiles(this.#seen, stamps).length === 0
    this.#seen = stamps
    const now = performance.now()
    if (!isSame) this.#unsettledSince ??= now
    const isSettled = isSame || now - this.#unsettledSince! > UNSETTLED_MS
    if (isSettled) this.#unsettledSince = undefined
    return isSettled
  }

  /** A test beside the handler is none of its files. */
  #counts(path: string): boolean {
    return this.#sources === undefined || !isScript(path) || this.#sources.has(path)
  }

  get #name(): string {
    return this.#model?.name ?? defaultModelName(this.#folder)
  }

  #told([first = '', ...others]: readonly string[]): string {
    const name = relative(this.#folder, first) || basename(first)
    return others.length === 0 ? name : `${name} and ${others.length} more`
  }

  #say(what: string): void {
    this.#host.output.out(`${this.#name}: ${what}`)
  }
}
