/** The oldest Node.js that runs the commands, as major and minor; the same as `engines` of package.json. */
export const OLDEST_NODE = [20, 11] as const

/**
 * Ends the process with one line and status 1 on a Node.js that is too old. A command imports nothing else
 * statically, because an old Node.js may not read the other modules at all.
 */
export function refuseOldNode(): void {
  const [major = 0, minor = 0] = process.versions.node.split('.').map(Number)
  const [oldestMajor, oldestMinor] = OLDEST_NODE
  if (major > oldestMajor || (major === oldestMajor && minor >= oldestMinor)) return
  console.error(
    `torchserve-ts needs Node ${OLDEST_NODE.join('.')} or newer, this is ${process.versions.node}`,
  )
  process.exit(1)
}
