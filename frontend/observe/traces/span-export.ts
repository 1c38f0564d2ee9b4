import { Worker } from 'node:worker_threads'
import { threadModule } from '../../package-info.ts'
import type { SpanOutlet } from './recorded-span.ts'
import { type Batches, encodedBatches, MAX_BYTES, ROWS } from './batch-settings.ts'
import { EncodedSpans } from './encoded-spans.ts'
import { type Cell, type EndedSpan, SpanRows } from './span-rows.ts'
import type { Environment } from './start.ts'
import type { TraceExporter } from './trace-exporters.ts'
import { startTimer } from '../../../common/timer.ts'

/** What the thread has to know. */
export interface ExporterSettings {
  readonly exporters: readonly TraceExporter[]
  /** Whether spans come as EncodedSpans writes them; see takesEncoded. */
  readonly encoded: boolean
}

/** Spans as EncodedSpans or SpanRows writes them. */
export interface SpansToExport {
  readonly spans: Uint8Array | Cell[]
  readonly count: number
}

/** `close`: the thread is to export what it has, and end. */
export type ToExporter = SpansToExport | 'close'

/** Takes spans in the form that the exporters need. */
interface SpanBatch {
  add(span: EndedSpan): void
  /** Undefined: nobody counts them. */
  readonly bytes?: number
  /** What was added; nothing is then. */
  take(): SpansToExport['spans']
  /** Nobody reads any more what `take` has returned, if it is shared. */
  giveBack?(taken: Uint8Array): void
}

export type FromExporter =
  /**
   * So many spans wait no longer: they are taken or, if encoded, exported or given up. `shared`: where they
   * were, if they were not copied; nobody reads it any more.
   */
  | { readonly done: number; readonly shared?: Uint8Array | undefined }
  | { readonly warning: string }
  | 'closed'

const HEAP_MB = 256

/**
 * Hands spans to a thread that exports them: for those of one request the SDK's serializer takes longer than
 * the server for a short request, and sending them holds up others.
 */
export class SpanExport implements SpanOutlet {
  readonly #worker: Worker
  readonly #warn: (message: string) => void
  readonly #batch: SpanBatch
  readonly #batches: Batches
  #count = 0
  #waiting = 0
  #timer: NodeJS.Timeout | undefined
  /** Whether spans go as soon as none waits. */
  #isDue = false
  #isOver = false
  /** Whether the thread has got spans, and may have some yet. */
  #hasSpans = false
  #hasDropped = false
  #closed: () => void = () => undefined

  /** @param warn gets what the SDK reports, and why spans are lost */
  constructor(settings: ExporterSettings, env: Environment, warn: (message: string) => void) {
    this.#warn = warn
    this.#batch = settings.encoded ? new EncodedSpans() : new SpanRows()
    this.#batches = settings.encoded ? encodedBatches(env) : ROWS
    this.#worker = new Worker(threadModule('frontend/observe/traces/export-worker'), {
      execArgv: [],
      env,
      workerData: settings,
      resourceLimits: { maxOldGenerationSizeMb: HEAP_MB },
    })
    this.#worker.unref()
    this.#worker
      .on('message', (message: FromExporter) => this.#answered(message))
      .on('error', ({ message }: Error) => warn(`OpenTelemetry: spans are not exported any more: ${message}`))
      .on('exit', () => this.#ended())
  }

  add(span: EndedSpan): void {
    if (this.#isOver) return
    const { size, delayMs, maxWaiting } = this.#batches
    if (this.#waiting + this.#count >= maxWaiting) {
      this.#dropped()
      return
    }
    this.#batch.add(span)
    this.#count += 1
    const { bytes = 0 } = this.#batch
    if (this.#count >= size || bytes >= MAX_BYTES) this.#send()
    else this.#timer ??= startTimer(() => this.#sendSome(), delayMs).unref()
  }

  /** Resolves when everything is exported, or cannot be. */
  async close(): Promise<void> {
    if (this.#isOver) return
    this.#send()
    const closed = new Promise<void>((resolve) => (this.#closed = resolve))
    this.#worker.postMessage('close' satisfies ToExporter)
    await closed
  }

  /** Ends the thread, whatever it is at, and tells what it has not exported. */
  async terminate(): Promise<void> {
    if (this.#hasSpans) this.#warn('OpenTelemetry: the stop did not wait longer, and the last spans are lost')
    await this.#worker.terminate()
  }

  /** Fewer than a batch. They wait for those before them: a slow collector gets them together. */
  #sendSome(): void {
    this.#timer = undefined
    if (this.#waiting === 0) this.#send()
    else this.#isDue = true
  }

  #send(): void {
    clearTimeout(this.#timer)
    this.#timer = undefined
    this.#isDue = false
    if (this.#count === 0) return
    const count = this.#count
    this.#hasSpans = true
    this.#waiting += count
    this.#count = 0
    const spans = this.#batch.take()
    this.#worker.postMessage({ spans, count } satisfies ToExporter)
  }

  #answered(message: FromExporter): void {
    if (message === 'closed') {
      this.#hasSpans = false
      this.#closed()
    } else if ('warning' in message) this.#warn(message.warning)
    else this.#done(message)
  }

  #done({ done, shared }: Extract<FromExporter, { done: number }>): void {
    this.#waiting -= done
    if (shared !== undefined) this.#batch.giveBack?.(shared)
    if (this.#isDue && this.#waiting === 0) this.#send()
  }

  #dropped(): void {
    if (this.#hasDropped) return
    this.#hasDropped = true
    this.#warn('OpenTelemetry: spans come faster than they are exported, and some are dropped')
  }

  #ended(): void {
    this.#isOver = true
    this.#hasSpans = false
    clearTimeout(this.#timer)
    this.#closed()
  }
}
