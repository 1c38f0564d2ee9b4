// Loaded into a server under test (node --import): on SIGUSR2 it reports the most processor time that the
// main
// thread has spent in one turn of the event loop since the last report. Elapsed time would grow on a busy
// machine.
import { readFileSync } from 'node:fs'

const usage = `/proc/self/task/${process.pid}/schedstat`
const cpuMs = () => Number(readFileSync(usage, 'latin1').split(' ', 1)[0]) / 1e6

let last = cpuMs()
let longest = 0
setInterval(() => {
  const now = cpuMs()
  longest = Math.max(longest, now - last)
  last = now
}, 1).unref()

process.on('SIGUSR2', () => {
  process.stderr.write(`turn-probe ${longest.toFixed(1)}\n`)
  longest = 0
})
