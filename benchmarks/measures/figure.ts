/** A measured figure other than throughput, with its limit. */
export interface Figure {
  /** Name of the measure: memory, disconnect, ... */
  measure: string
  name: string
  value: number
  unit: 'ms' | 'KB' | 'MB' | 'x' | 'streams' | 'models'
  /** Maximum allowed value. */
  atMost?: number
  /** Minimum allowed value. */
  atLeast?: number
}

/** Waits for a time in milliseconds. */
export function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms))
}
