import { access } from 'node:fs/promises'

/** Whether there is anything at a path. Links are followed. */
export function pathExists(path: string): Promise<boolean> {
  return access(path).then(
    () => true,
    () => false,
  )
}
