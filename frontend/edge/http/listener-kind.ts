/** What one listener serves. `shared`: inference and management on one port. */
export type ListenerKind = 'inference' | 'management' | 'shared' | 'metrics'

export function servesManagement(kind: ListenerKind): boolean {
  return kind === 'management' || kind === 'shared'
}
