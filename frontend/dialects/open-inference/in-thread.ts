import { pathToFileURL } from 'node:url'
import { ConversionThreads } from '../../edge/conversion-threads.ts'
import { builtModule } from '../../package-info.ts'
import type { conversions } from './conversions.ts'

/** In TypeScript sources (tests, tsx) the thread needs a loader. */
const ENTRY = import.meta.url.endsWith('.ts')
  ? new URL('conversion-worker-from-source.mjs', import.meta.url)
  : pathToFileURL(builtModule('frontend/dialects/open-inference/conversion-worker.js'))

/** Threads that read large requests and write large answers. */
export const inThread = new ConversionThreads<typeof conversions>(ENTRY)
