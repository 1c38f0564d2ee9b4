// Starts unpack-worker.ts where the project runs from its TypeScript sources (tests, tsx): a thread does not inherit their loader.
// A build does not contain this file.
import { register } from 'tsx/esm/api'

register()
await import('./unpack-worker.ts')
