/** A server to measure. */
export interface Target {
  name: string
  /** Origin, as `http://host:port`; absent for a gRPC ceiling. */
  restOrigin?: string
  /** Origin, as `http://host:port`; absent for an HTTP ceiling. */
  grpcOrigin?: string
  /** Of every request. */
  headers?: Record<string, string>
  /** All current processes; the first is the frontend. */
  pids(): number[]
  stop(): Promise<void>
}
