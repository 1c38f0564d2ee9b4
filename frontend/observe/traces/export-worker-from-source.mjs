// Starts export-worker.ts from TypeScript sources (tests, tsx), because a thread does not inherit their
// loader. Builds do not contain this file.
import { register } from 'tsx/esm/api'

register()
await import('./export-worker.ts')
