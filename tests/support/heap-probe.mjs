// Loaded into a server under test (node --expose-gc --import): on SIGUSR2 it collects garbage and reports
// heap contents.
process.on('SIGUSR2', () => {
  globalThis.gc()
  globalThis.gc()
  process.stderr.write(`heap-probe ${process.memoryUsage().heapUsed}\n`)
})
