import type { Settings } from '../config/settings.ts'
import { ConfigReader } from './config-reader.ts'
import type { ScalingSettings } from './scaling-rule.ts'

/** Milliseconds that a request may wait for a slot. */
const TARGET_QUEUE_MS = 500
/** Seconds. */
const SCALE_UP_INTERVAL = 5
const SCALE_DOWN_AFTER = 60

/**
 * How the workers of a model follow its load: `scaling` of its model-config.yaml (`true`, `false`, or a map
 * of the keys that differ from the server's), else the server's keys.
 * @param reader of the whole file; gets the warnings
 * @param useJobTicket excludes scaling
 * @returns undefined: they do not
 */
export function scalingSettings(
  reader: ConfigReader,
  settings: Pick<Settings, 'scaling' | 'scaleToZeroAfter'>,
  useJobTicket: boolean,
): ScalingSettings | undefined {
  const asked = reader.isBoolean('scaling') ? reader.boolean('scaling') : undefined
  const section = asked === undefined ? reader.section('scaling') : undefined
  if (!(asked ?? (section !== undefined || settings.scaling))) return undefined
  if (useJobTicket) {
    // Said only to those who asked: the server's key is for all models.
    if (asked ?? section) reader.inert('scaling', 'with useJobTicket no request waits')
    return undefined
  }
  const file = section ?? new ConfigReader({})
  const milliseconds = (key: string, otherwise: number): number =>
    (file.number(key, { above: 0 }) ?? otherwise) * 1000
  const found: ScalingSettings = {
    targetQueueTime: file.number('targetQueueTime', { above: 0 }) ?? TARGET_QUEUE_MS,
    scaleUpInterval: milliseconds('scaleUpInterval', SCALE_UP_INTERVAL),
    scaleDownAfter: milliseconds('scaleDownAfter', SCALE_DOWN_AFTER),
    scaleToZeroAfter: milliseconds('scaleToZeroAfter', settings.scaleToZeroAfter),
  }
  file.misspelt()
  reader.warnings.push(...file.warnings.map((warning) => `scaling: ${warning}`))
  return found
}
