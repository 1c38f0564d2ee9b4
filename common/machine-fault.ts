/** What a machine may have again later: descriptors, processes, memory, room on a disk. */
const CODES: ReadonlySet<unknown> = new Set([
  ...['EMFILE', 'ENFILE', 'EAGAIN', 'ENOMEM', 'ENOSPC', 'EDQUOT', 'EROFS', 'EIO'],
])

/** Whether the machine caused an error, or one of its causes. */
export function isMachineFault(error: unknown): boolean {
  let at = error as { code?: unknown; cause?: unknown } | undefined
  for (; at !== undefined && at !== null; at = at.cause as typeof at) if (CODES.has(at.code)) return true
  return false
}

/** For `catch`: what cannot be read counts as absent. @throws the error, if the machine caused it */
export function absent(error: unknown): undefined {
  if (isMachineFault(error)) throw error
}
