/** CPU milliseconds of this process. Unlike elapsed time they do not grow when the machine is busy. */
export function cpuMs(work: () => void): number {
  const before = process.cpuUsage()
  work()
  const { user, system } = process.cpuUsage(before)
  return (user + system) / 1000
}
