/** How a request ended, as its client sees it. */
export type End =
  /** A status before the first item. */
  | { kind: 'refused'; status: string; message: string }
  | { kind: 'finished' }
  /** After the first item, distinguishable from a normal end. */
  | { kind: 'failed'; message: string }
  | { kind: 'left' }

export interface AskOptions {
  /** Further headers of the request; over gRPC they are metadata. */
  headers?: Readonly<Record<string, string>>
  /** Leave after so many items. */
  leaveAfter?: number
  /** Leave after so many milliseconds, whatever came. */
  leaveAfterMs?: number
  /** Read nothing more once the answer has begun, until this aborts; then leave. */
  stallUntil?: AbortSignal
  /** Read nothing more after a read with items until this promise resolves: a slow reader. */
  pause?: () => Promise<void>
  /** Called for each item, with the number of items so far. */
  onItem?: (count: number) => void
}

export interface Asked {
  /** The received items; a unary response is one item. */
  readonly items: readonly { text: string; at: number }[]
  readonly end: End
  /** performance.now() when the client left. */
  readonly leftAt?: number
  /** Lower-case names; undefined where the protocol has no such thing. */
  readonly headers?: Readonly<Record<string, string>>
}

/** A dialect and how to call a model in it. */
export interface Dialect {
  readonly name: string
  /** The response is unary, so there are no items. */
  readonly whole: boolean
  /** HTTP: the headers of point 7 have a meaning. */
  readonly http: boolean
  /** The status of an unknown model. */
  readonly notFound: string
  ask(model: string, input: string, options?: AskOptions): Promise<Asked>
  close(): void
}
