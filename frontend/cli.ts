#!/usr/bin/env node
import { runCli } from './cli/main.ts'

const status = await runCli(process.argv.slice(2), {
  loadServer: async () => (await import('./server.ts')).startServer,
})
process.exit(status)
