import { ConversionThreads } from '../../edge/conversion-threads.ts'
import type { conversions } from './conversions.ts'

/** In TypeScript sources (tests, tsx) the thread needs a loader. */
const ENTRY = import.meta.url.endsWith('.ts') ? 'conversion-worker-from-source.mjs' : 'conversion-worker.js'

/** Threads that read large requests and write large answers. */
export const inThread = new ConversionThreads<typeof conversions>(new URL(ENTRY, import.meta.url))
