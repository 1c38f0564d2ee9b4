import type { Settings } from '../config/settings.ts'
import { RateLimiter } from './rate-limiter.ts'

/** Undefined: nothing is limited. Keys of a file may have limits, now or after a change. */
export function limiterOf(settings: Settings): RateLimiter | undefined {
  const limits = {
    address: {
      requestsPerSecond: settings.addressRequestsPerSecond,
      concurrentStreams: settings.addressConcurrentStreams,
      bytesPerSecond: settings.addressBytesPerSecond,
    },
    key: {
      requestsPerSecond: settings.keyRequestsPerSecond,
      concurrentStreams: settings.keyConcurrentStreams,
      bytesPerSecond: settings.keyBytesPerSecond,
    },
  }
  const isLimited = Object.values(limits).some((each) => Object.values(each).some((limit) => limit > 0))
  return isLimited || settings.apiKeysFile !== undefined ? new RateLimiter(limits) : undefined
}
