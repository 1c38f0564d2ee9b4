export type Outcome = 'passed' | 'failed' | 'impossible'

/** What became of one request of a collection or one test of a pytest file. */
export interface Result {
  /** Collection or test file. */
  readonly suite: string
  readonly test: string
  readonly outcome: Outcome
  /** Why it failed or is impossible, or how it passed. */
  readonly reason?: string
}
