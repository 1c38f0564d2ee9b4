/** Milliseconds of computing that this process spends on it: unlike the time that passes, they do not grow when the machine is busy. */
export function cpuMs(work: () => void): number {
  const before = process.cpuUsage()
  work()
  const { user, system } = process.cpuUsage(before)
  return (user + system) / 1000
}
