import { rmSync } from 'node:fs'

/**
 * Removes a file or a folder with its content. Never throws, so that what ends a server comes to its end.
 * @param left is told what is left and why. Default: nobody, because the next start removes it
 */
export function removeSync(path: string, left?: (line: string) => void): void {
  try {
    rmSync(path, { recursive: true, force: true })
  } catch (error) {
    left?.(`${path} is left behind: ${(error as Error).message}`)
  }
}
