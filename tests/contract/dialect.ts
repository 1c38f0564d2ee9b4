/** How a stream ended, as its client sees it. */
export type End =
  /** A status before the first item. */
  | { kind: 'refused'; status: string; message: string }
  | { kind: 'finished' }
  /** After the first item, told apart from a normal end. */
  | { kind: 'failed'; message: string }
  | { kind: 'left' }

export interface StreamOptions {
  /** Leave after so many items. */
  leaveAfter?: number
  /** Read nothing for so long (milliseconds) after the answer's beginning, then leave. */
  stallMs?: number
}

export interface Streamed {
  readonly items: readonly { text: string; at: number }[]
  readonly end: End
  /** performance.now() when the client left. */
  readonly leftAt?: number
  /** Lower-case names; undefined where the protocol has no such thing. */
  readonly headers?: Readonly<Record<string, string>>
}

/** One way to ask a model for a stream. */
export interface Dialect {
  readonly name: string
  /** HTTP: the headers of point 7 have a meaning. */
  readonly http: boolean
  /** The status of an unknown model. */
  readonly notFound: string
  stream(model: string, input: string, options?: StreamOptions): Promise<Streamed>
  close(): void
}
