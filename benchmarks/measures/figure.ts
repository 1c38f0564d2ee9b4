/** One measured figure that is no throughput, and what the issue asks of it. */
export interface Figure {
  /** Which of the measures: memory, disconnect, ... */
  measure: string
  name: string
  value: number
  unit: 'ms' | 'KB' | 'MB' | 'x'
  /** Greatest value that is allowed. */
  atMost?: number
}

/** Waits. */
export function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms))
}
