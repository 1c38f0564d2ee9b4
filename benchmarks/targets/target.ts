/** A server to measure. */
export interface Target {
  name: string
  /** `http://host:port`; absent for a gRPC ceiling. */
  restOrigin?: string
  /** `http://host:port`; absent for an HTTP ceiling. */
  grpcOrigin?: string
  /** All current processes: frontend and workers. */
  pids(): number[]
  stop(): Promise<void>
}
