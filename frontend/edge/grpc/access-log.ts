import { status, ServerInterceptingCall } from '@grpc/grpc-js'
import type { Metadata, ServerInterceptingCallInterface, ServerInterceptor } from '@grpc/grpc-js'
import type { AccessLog } from '../../observe/logs/access-log.ts'

type Listener = Parameters<ServerInterceptingCallInterface['start']>[0]
type CallStatus = Parameters<ServerInterceptingCallInterface['sendStatus']>[0]

/** Writes a call's line in the access log (docs/metrics-and-logs.md) at its end, whoever ends it. */
class LoggedCall extends ServerInterceptingCall {
  readonly #next: ServerInterceptingCallInterface
  readonly #path: string
  readonly #log: AccessLog
  readonly #startedAt = Date.now()
  /** Asked now: at a cancelled call's end it may be gone. */
  readonly #peer: string
  readonly #traceId: string | undefined
  #logged = false

  constructor(
    next: ServerInterceptingCallInterface,
    path: string,
    log: AccessLog,
    traceId: string | undefined,
  ) {
    super(next)
    this.#traceId = traceId
    this.#next = next
    this.#path = path
    this.#log = log
    this.#peer = next.getPeer()
  }

  override start(listener: Listener): void {
    this.#next.start(new LoggedListener(listener, () => this.#line(status.CANCELLED)))
  }

  override sendMetadata(metadata: Metadata): void {
    this.#next.sendMetadata(metadata)
  }

  override sendMessage(message: Buffer, accepted: () => void): void {
    this.#next.sendMessage(message, accepted)
  }

  override sendStatus(sent: CallStatus): void {
    this.#line(sent.code)
    this.#next.sendStatus(sent)
  }

  #line(code: number): void {
    if (this.#logged) return
    this.#logged = true
    this.#log.grpc(this.#peer, this.#path, code, this.#startedAt, this.#traceId)
  }
}

/** Hears also when the client cancels, after which no status is sent. */
class LoggedListener implements Listener {
  readonly #next: Listener
  readonly #cancelled: () => void

  constructor(next: Listener, cancelled: () => void) {
    this.#next = next
    this.#cancelled = cancelled
  }

  onReceiveMetadata(metadata: Metadata): void {
    this.#next.onReceiveMetadata(metadata)
  }

  onReceiveMessage(message: unknown): void {
    this.#next.onReceiveMessage(message)
  }

  onReceiveHalfClose(): void {
    this.#next.onReceiveHalfClose()
  }

  onCancel(): void {
    this.#cancelled()
    this.#next.onCancel()
  }
}

/**
 * For every call of a server. None: there is no access log.
 * @param traceId of the call that begins; undefined: it has no span
 */
export function accessLogged(
  log: AccessLog | undefined,
  traceId: () => string | undefined,
): ServerInterceptor[] {
  return log === undefined ? [] : [({ path }, call) => new LoggedCall(call, path, log, traceId())]
}
