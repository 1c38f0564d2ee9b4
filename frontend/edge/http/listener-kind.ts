/** What one listener serves. `shared`: inference and management on one port. */
export type ListenerKind = 'inference' | 'management' | 'shared' | 'metrics'

export function servesInference(kind: ListenerKind): boolean {
  return kind === 'inference' || kind === 'shared'
}

export function servesManagement(kind: ListenerKind): boolean {
  return kind === 'management' || kind === 'shared'
}
