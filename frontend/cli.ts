#!/usr/bin/env node
import { refuseOldNode } from '../common/node-version.ts'

refuseOldNode()
const { keepCompiledCode } = await import('./cli/compile-cache.ts')
keepCompiledCode()
// Read on demand: what was read before is not cached.
const { runCli } = await import('./cli/main.ts')
const status = await runCli(process.argv.slice(2), {
  loadServer: async () => (await import('./server.ts')).startServer,
})
process.exit(status)
