const kill = process.kill.bind(process)

/**
 * A model's description has pid -1 while its worker has no process, and a signal to -1 reaches every process
 * of the user, other test runs included.
 */
process.kill = (pid, signal) => {
  if (pid === -1 || pid === 0)
    throw new Error(`A test sends a signal to pid ${pid}: its worker has no process`)
  return kill(pid, signal)
}
