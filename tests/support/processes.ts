/** Whether a process of that id runs (a zombie of ours counts until it is reaped). */
export function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch {
    return false
  }
}
