import type { ServeError } from '../../../common/errors.ts'
import { redactSecrets, redactUrl } from '../../../common/texts.ts'
import { jsonLine } from './log-line.ts'
import type { LineWriter } from './appender.ts'
import { SampledLines } from './sampled-lines.ts'

/** Who did it. */
export interface AuditWho {
  /** `inference` and `management` for TorchServe's tokens, else as the entry or certificate names it. */
  readonly name: string
  readonly kind: string
}

/** What a call is about. */
export interface AuditSubject {
  model?: string | undefined
  version?: string | undefined
  workflow?: string | undefined
  /** Id of a request of another client. */
  request?: string | undefined
  /** Passwords and signatures in it are not written. */
  url?: string | undefined
  detail?: string | undefined
}

/** One thing that happened. Texts of clients may be any: they are redacted, cut and escaped here. */
export interface AuditEntry extends AuditSubject {
  /** `authentication` and `limit`: only what was refused. `keys`: keys were made or read again. */
  readonly event: 'management' | 'authentication' | 'limit' | 'keys'
  /** `register model`; for what was refused before it was known, the request line or rpc. */
  readonly operation: string
  readonly outcome: 'done' | 'refused' | 'failed'
  /** HTTP status, or status code of gRPC. */
  readonly status?: number | undefined
  /** Code of common/errors.ts. */
  readonly code?: string | undefined
  readonly who?: AuditWho | undefined
  readonly address?: string | undefined
  readonly protocol?: 'rest' | 'grpc'
  readonly requestId?: string | undefined
}

/** What a line says of a request that was refused with UNAUTHORIZED or RATE_LIMITED. */
export function refusalOf(
  { code, message }: ServeError,
  authorization: string | undefined,
): Pick<AuditEntry, 'event' | 'outcome' | 'code' | 'detail'> {
  if (code === 'RATE_LIMITED') return { event: 'limit', outcome: 'refused', code, detail: message }
  const detail = authorization === undefined ? 'no token' : 'not accepted'
  return { event: 'authentication', outcome: 'refused', code, detail }
}

/** Lines of an event that strangers cause: so many at once, then one each second. */
const BURST = 20

/** What strangers can cause as often as they like. */
type Flood = 'authentication' | 'limit'

/** Writes audit_log.log: who managed what, and who was refused, as one JSON object per line. */
export class AuditLog {
  readonly #lines: LineWriter
  readonly #samples: Readonly<Record<Flood, SampledLines>> = {
    authentication: new SampledLines(BURST, (leftOut) => this.#tellLeftOut('authentication', leftOut)),
    limit: new SampledLines(BURST, (leftOut) => this.#tellLeftOut('limit', leftOut)),
  }

  constructor(lines: LineWriter) {
    this.#lines = lines
  }

  /** Refused tokens and limits are written at a bounded rate; the others are counted. */
  write(entry: AuditEntry): void {
    const { event } = entry
    if ((event === 'authentication' || event === 'limit') && !this.#admits(event)) return
    this.#line(entry)
  }

  /** Writes the counts of what was left out. To be called before the file ends. */
  close(): void {
    this.#samples.authentication.close()
    this.#samples.limit.close()
  }

  #line({ operation, url, ...entry }: AuditEntry): void {
    const { event, ...rest } = entry
    const time = new Date().toISOString()
    const shown = { operation: redactSecrets(operation), url: url === undefined ? undefined : redactUrl(url) }
    this.#lines.write(jsonLine({ time, event, ...shown, ...rest }))
  }

  #admits(event: Flood): boolean {
    const leftOut = this.#samples[event].next()
    if (leftOut !== undefined && leftOut > 0) this.#tellLeftOut(event, leftOut)
    return leftOut !== undefined
  }

  #tellLeftOut(event: Flood, leftOut: number): void {
    const detail = `${leftOut} more were refused and are not written`
    this.#line({ event, operation: 'left out', outcome: 'refused', detail })
  }
}

/** Codes with which the server says that somebody may not do something. */
const REFUSALS: ReadonlySet<string> = new Set([
  'UNAUTHORIZED',
  'INVALID_API_KEY',
  'API_DISABLED',
  'RATE_LIMITED',
])

/** How a call ended; undefined: well. */
export function outcomeOf(
  error: { readonly code: string } | undefined,
): Pick<AuditEntry, 'outcome' | 'code'> {
  if (error === undefined) return { outcome: 'done' }
  return { outcome: REFUSALS.has(error.code) ? 'refused' : 'failed', code: error.code }
}

/** In the place of lines that were lost. */
export function droppedAuditLine(count: number, why: string): string {
  const detail = `${count} lines dropped: ${why}`
  return jsonLine({ time: new Date().toISOString(), event: 'left out', detail })
}
