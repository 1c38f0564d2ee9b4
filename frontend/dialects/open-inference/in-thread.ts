import { ConversionThreads } from '../../edge/conversion-threads.ts'
import { threadModule } from '../../package-info.ts'
import type { conversions } from './conversions.ts'

/** Threads that read large requests and write large answers. */
export const inThread = new ConversionThreads<typeof conversions>(
  threadModule('frontend/dialects/open-inference/conversion-worker'),
)
