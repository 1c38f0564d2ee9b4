/** Ends a process and the process group that it leads, whatever of them is still there. @param pid nothing happens unless it is above 1 */
export function killSession(pid: number): void {
  if (pid <= 1) return
  for (const target of [-pid, pid]) {
    try {
      process.kill(target, 'SIGKILL')
    } catch {
      // It has ended already.
    }
  }
}
